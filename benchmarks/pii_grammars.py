"""Grammars of personal data, of the text around it, and of what only looks like it.

Values come from grammars (numbering plans, RFC 5322, RFC 3986, ways to make passwords), contexts
from lists of templates. `is_aside` sets a third of the values and a third of the templates aside,
by a hash: patterns are improved on the others alone, and `pii_quality.py` reports both.
"""

# Tables of text, one row a line.
# ruff: noqa: E501, SIM905

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable, Sequence

Maker = Callable[[random.Random], str]
ALNUM = string.ascii_letters + string.digits
ATEXT_MARKS = "!#$%&'*+/=?^_`{|}~-"


def is_aside(text: str) -> bool:
    """Tell by a hash that a value or template belongs to the third that nobody tunes on."""
    return hashlib.sha256(text.encode()).digest()[0] % 3 == 0


def fill(template: str, rng: random.Random) -> str:
    """Put digits for `#` (any), `N` (2 to 9) and `@` (1 to 9); other signs stay."""
    digits = {"#": "0123456789", "N": "23456789", "@": "123456789"}
    return "".join(rng.choice(digits[sign]) if sign in digits else sign for sign in template)


def pick(signs: Sequence[str], count: int, rng: random.Random) -> str:
    """Return `count` random signs."""
    return "".join(rng.choice(signs) for _ in range(count))


WORDS = """amber anchor apple autumn badger bamboo basil bicycle blanket breeze butter cactus camera candle
carpet castle cedar cherry cobalt copper coral cricket crystal daisy desert dolphin dragon eagle ember
falcon feather fiddle forest galaxy garden ginger glacier granite hammer harbor hazel helmet honey island
jasmine jungle kettle ladder lantern lemon lizard magnet maple marble meadow mirror monkey mustard nectar
needle ocean olive orchid otter paddle pepper pickle pillow planet pocket puzzle rabbit ribbon river rocket
saddle saffron sailor shadow silver spider summer sunset temple thunder tiger timber tulip turtle umbrella
velvet violet walnut whisper willow window winter wizard yellow zebra sonne garten schmetterling fenster
soleil jardin fromage papillon estrella ventana mariposa naranja zahrada rybka kwiatek drzewo sakura""".split()
LEET = str.maketrans({"a": "4", "e": "3", "i": "1", "o": "0", "s": "5", "t": "7"})
MARKS = "!@#$%^&*-_+=?.~"


def password(rng: random.Random) -> str:
    """Return a password that a person or a generator could have made."""
    word, other = rng.choice(WORDS), rng.choice(WORDS)
    kind = rng.randrange(12)
    if kind == 0:
        return word + str(rng.randrange(10, 9999))
    if kind == 1:
        return word.capitalize() + str(rng.randrange(1950, 2030)) + rng.choice("!?#*$")
    if kind == 2:
        return (word + other).translate(LEET).capitalize() + rng.choice(["", "!", "99"])
    if kind == 3:
        return word.capitalize() + other.capitalize() + str(rng.randrange(10, 99))
    if kind == 4:
        return "-".join(rng.choice(WORDS) for _ in range(rng.choice([4, 5])))
    if kind == 5:
        return word + rng.choice("_.@#!$&") + other + str(rng.randrange(1, 999))
    if kind in (6, 7, 8):
        return _with_digit(ALNUM, rng.randrange(8, 25), rng)
    if kind == 9:
        return _with_digit("0123456789abcdef", rng.choice([12, 16, 24, 32]), rng)
    inner = _with_digit(ALNUM * 3 + MARKS, rng.randrange(7, 18), rng)
    return rng.choice(ALNUM) + inner + rng.choice(ALNUM + "!$%*")


def _with_digit(signs: str, count: int, rng: random.Random) -> str:
    value = pick(signs, count, rng)
    place = rng.randrange(1, count)
    return value[:place] + rng.choice("23456789") + rng.choice("kmpqrtwz") + value[place + 2 :]


def url_password(rng: random.Random) -> str:
    """Return a password as RFC 3986 allows it in the user part of a URL."""
    value = "".join(f"%{ord(sign):02X}" if sign in "@#%^?/[]:" else sign for sign in password(rng))
    return rng.choice([value, value, value, rng.choice(WORDS) + rng.choice(WORDS)])


def url_token(rng: random.Random) -> str:
    """Return a token that stands alone before the host."""
    return rng.choice(
        [
            "ghp_" + pick(ALNUM, 36, rng),
            "glpat-" + pick(ALNUM, 20, rng),
            _with_digit("0123456789abcdef", rng.choice([32, 40]), rng),
            _with_digit(ALNUM, rng.randrange(20, 44), rng),
        ]
    )


# {u} is a user, {h} a host, {} the secret.
URL_CONTEXTS = """postgres://{u}:{}@{h}/app
postgresql://{u}:{}@{h}:5432/app?sslmode=require
DATABASE_URL=postgres://{u}:{}@{h}:5432/prod
engine = create_engine("postgresql+psycopg2://{u}:{}@{h}/sales")
mysql://{u}:{}@{h}:3306/shop
redis://:{}@{h}:6379/0
rediss://{u}:{}@{h}:6380
REDIS_URL: "redis://:{}@{h}:6379"
mongodb+srv://{u}:{}@{h}/test?retryWrites=true
mongoose.connect('mongodb://{u}:{}@{h}:27017/admin');
amqp://{u}:{}@{h}:5672/vhost
broker_url = "amqps://{u}:{}@{h}//"
ftp://{u}:{}@{h}/pub/file.tar.gz
wget ftp://{u}:{}@{h}/backup.zip
sftp://{u}:{}@{h}:22/home
git clone https://{u}:{}@{h}/team/repo.git
git remote set-url origin https://oauth2:{}@{h}/group/project.git
git+https://{u}:{}@{h}/lib.git@main#egg=lib
pip install --extra-index-url https://{u}:{}@{h}/simple mypkg
curl -s https://{u}:{}@{h}/api/v1/status
http_proxy=http://{u}:{}@{h}:8080
export HTTPS_PROXY="http://{u}:{}@{h}:3128"
<a href="https://{u}:{}@{h}/private">link</a>
[dashboard](https://{u}:{}@{h}/d/1)
{"url": "https://{u}:{}@{h}/x", "timeout": 3}
smtp://{u}:{}@{h}:587
smtps://{u}%40mail.com:{}@{h}
ldap://{u}:{}@{h}:389
rtsp://{u}:{}@{h}:554/stream1
kafka://{u}:{}@{h}:9092
nats://{u}:{}@{h}:4222
elasticsearch: https://{u}:{}@{h}:9200
jdbc:postgresql://{u}:{}@{h}/db
ssh://{u}:{}@{h}:2222/srv
socks5://{u}:{}@{h}:1080
2024-03-01 12:00:01 ERROR could not connect to mysql://{u}:{}@{h}/db: timeout
Open https://{u}:{}@{h}/ in the browser, then log in.
Die Adresse lautet https://{u}:{}@{h}/wiki.
L'adresse est http://{u}:{}@{h}/ (ne pas partager)
连接地址是 mysql://{u}:{}@{h}:3306/db 请勿外传
Адрес: ftp://{u}:{}@{h}/docs, пароль внутри.
接続先は postgres://{u}:{}@{h}/main です
`clickhouse://{u}:{}@{h}:9000/default`
see <https://{u}:{}@{h}/report>
- source: svn+https://{u}:{}@{h}/trunk
dsn = 'https://{u}:{}@{h}/42'
https://{u}:{}@{h}/a,200
imaps://{u}:{}@{h}/INBOX
bolt://{u}:{}@{h}:7687
("cockroachdb://{u}:{}@{h}:26257/bank")""".splitlines()
TOKEN_CONTEXTS = """git clone https://{}@{h}/org/repo.git
https://{}@{h}/api
git+https://{}@{h}/org/lib.git
"git+https://{}@{h}/org/lib.git#v2"
https://{}:x-oauth-basic@{h}/org/repo.git
curl https://{}:@{h}/v1/charges
remote: https://{}@{h}/x.git
SENTRY_DSN=https://{}@{h}/1234
pip install git+https://{}@{h}/org/pkg""".splitlines()
USERS = "app root jane deploy svc_web ci-bot admin u1234 reader max.muster".split()
HOSTS = (
    "db.internal cache-01 10.0.3.7 github.com gitlab.example.org localhost cluster0.ab1cd.mongodb.net"
    " proxy.corp.local mq.prod.svc.cluster.local [2001:db8::7] 127.0.0.1 repo.acme.io"
).split()


def url_context(template: str, rng: random.Random) -> str:
    """Return a template with user and host, the secret's place left open."""
    return template.replace("{u}", rng.choice(USERS)).replace("{h}", rng.choice(HOSTS))


URL_LOOKALIKES = """postgres://user:password@localhost/db
https://user:pass@example.com
ftp://username:password@host/myfile
mysql://root:${DB_PASSWORD}@db:3306/x
mongodb+srv://<username>:<password>@cluster0.mongodb.net/test
amqp://user:***@host:5672
redis://:$REDIS_PASSWORD@cache:6379
https://{user}:{password}@{host}/path
postgresql://%s:%s@%s/%s
postgres://USER:PASSWORD@HOST:5432/DB
https://oauth2:$TOKEN@gitlab.com/x.git
https://<token>@github.com/org/repo.git
https://YOUR_TOKEN@github.com/org/repo
postgres://postgres:postgres@localhost:5432/postgres
amqp://guest:guest@localhost:5672/
http://example.com:8080/@user/post
https://medium.com/@jane.doe/title-123
https://example.com/?email=a&next=@home
ssh://git@github.com/org/repo.git
svn+ssh://jane@svn.example.org/trunk
git@github.com:org/repo.git
https://cdn.jsdelivr.net/npm/vue@3.2.1/dist/vue.js
http://[::1]:3000/@vite/client
postgres://user:{{ db_password }}@host/db
https://#{user}:#{token}@host
http://user:xxxx@proxy:3128
https://user:your_password@host
mysql://user:<secret>@host
ftp://anonymous:guest@ftp.example.org
https://user@host.example.org:8443/path
sftp://backup@10.0.0.1/srv""".splitlines()

PASSWORD_CONTEXTS = """my password is {}
My password is {}.
my password is "{}", please keep it
The password for the wifi is {}
the admin password is '{}'
The new password is: {}
password: {}
Password: {}
Password : {}
PASSWORD: {}
Username: jane, Password: {}
user: jane pass: {}
login jane / password {}
Your temporary password is {}. Change it soon.
Log in as root with password {} and reboot.
(password: {})
The root password was {} until Monday
Wifi password = {}
**Password:** {}
Password: `{}`
| Password | {} |
* password: **{}**
<td>Password</td><td>{}</td>
<password>{}</password>
Das Passwort lautet {}
Passwort: {}
Mein Passwort ist "{}"
Mein Kennwort ist {}.
Das WLAN-Passwort lautet: {}
Mot de passe : {}
Mon mot de passe est {}
mot de passe: {}
Le mot de passe du wifi est « {} »
Contraseña: {}
Mi contraseña es {}
la contraseña del router es {}
Senha: {}
Minha senha é {}
La mia password è {}
La password del server è: {}
Wachtwoord: {}
Mijn wachtwoord is {}
Hasło: {}
Moje hasło to {}
Heslo: {}
Mé heslo je {}
Lösenord: {}
Mitt lösenord är {}
Adgangskode: {}
Salasana: {}
Salasanani on {}
Jelszó: {}
Şifre: {}
Parola: {}
Parola mea este {}
Пароль: {}
Мой пароль: {}
мой пароль {}
Мой пароль — {}
密码：{}
密码: {}
我的密码是{}
密码是 {} 请保管好
密碼：{}
パスワード：{}
パスワードは{}です
パスワード: {}
비밀번호: {}
제 비밀번호는 {} 입니다
كلمة المرور: {}
סיסמה: {}
मेरा पासवर्ड {} है
Mật khẩu: {}
Mật khẩu của tôi là {}
Kata sandi: {}
รหัสผ่าน: {}
Κωδικός: {}
PASSWORD={}
DB_PASSWORD={}
export PGPASSWORD={}
export DB_PASS='{}'
MYSQL_ROOT_PASSWORD={}
POSTGRES_PASSWORD="{}"
ENV ADMIN_PASSWORD {}
password={}
password = {}
password = "{}"
password='{}'
passwd = "{}"
db_password: {}
  password: {}
  password: "{}"
    - MYSQL_PASSWORD={}
"password": "{}"
"password":"{}",
{"user": "jane", "password": "{}", "port": 1}
'PASSWORD': '{}',
self.password = "{}"
const password = "{}";
String password = "{}";
$password = '{}';
define('DB_PASSWORD', '{}');
password => '{}',
password := "{}"
let pwd = '{}';
conn = connect(user="jane", password="{}", host="h")
login("jane", password='{}')
.setPassword("{}")
Server=db;User Id=sa;Password={};Encrypt=true
Server=db;Uid=sa;Pwd={};
Data Source=x;Password={}
host=db user=jane password={} dbname=x
spring.datasource.password={}
<add key="Password" value="{}"/>
--password {}
--password={}
mysql -u root -p{} shop
mysqldump --user=root --password={} shop > dump.sql
sshpass -p '{}' ssh root@host
curl -u jane:{} https://host/api
docker login -u jane -p {} registry.io
PGPASSWORD={} psql -h db
machine host login jane password {}
CREATE USER jane WITH PASSWORD '{}';
CREATE USER 'j'@'%' IDENTIFIED BY '{}';
requirepass {}
wpa_passphrase={}
psk="{}"
https://host/login?user=jane&password={}&next=1
user=jane&passwd={}
[2024-01-02] login failed for jane, password={}
passphrase: {}
The passphrase is "{}"
smtp_password = {}
ansible_ssh_pass={}
ansible_become_password: {}
admin_password = "{}"
redis_password: '{}'
http.password={}
Pass: {}
pw: {}
pwd: {}
userPassword: {}
password1={}
- Passwort für das Portal: {}
Zugang: max / Passwort: {}
Identifiant : jean, mot de passe : {}
usuario: ana, contraseña: {}
Логин: ivan, пароль: {}
用户名：wang，密码：{}
ユーザー名 tanaka パスワード {}
set password {}
$env:DB_PASSWORD = "{}"
set DB_PASSWORD={}
password "{}"
{{"login": "x", "passwd": "{}"}}""".splitlines()
WORD_PASSWORD_CONTEXTS = """DB_PASSWORD={}
MYSQL_PASSWORD="{}"
password = "{}"
"password": "{}"
password='{}'
Server=x;Password={};
my password is "{}"
export REDIS_PASSWORD='{}'
--password={}
PASSWORD '{}'""".splitlines()
PASSWORD_LOOKALIKES = """The password is required.
password is incorrect
Your password is too short
the password is stored as a hash
password must be at least 8 characters
Password: required, 8-20 characters
password = getpass()
password = getpass.getpass("Password: ")
password = os.environ["DB_PASSWORD"]
password = os.getenv('DB_PASSWORD')
password=None
password = None
password: str
password: string;
password?: string | null
password: Optional[str] = None
def login(user, password):
self.password = password
password = config.password
password=self.password,
password = request.form['password']
password = input("Enter password: ")
"password": password,
password: "${DB_PASSWORD}"
PASSWORD=${PASSWORD}
PASSWORD=$DB_PASSWORD
PASSWORD=<your password>
PASSWORD=your_password_here
password: {{ vault_password }}
password: changeme
password=********
Password: ****
password: [REDACTED]
password=xxxxxx
password: <password>
'password': '***'
password = "password"
password: "your-password"
Enter your password:
Forgot your password?
Reset password | Sign in
Password strength: weak
password_hash = sha256(password)
PASSWORD_HASHERS = ["x"]
password_min_length = 12
PASSWORD_RESET_TIMEOUT = 259200
password_file=/run/secrets/db
passwordField.value = ''
if password == other_password:
if (password !== confirm) {
password = crypt(password, salt)
assert password != "x"
<input type="password" name="password" value="">
<label for="password">Password</label>
password: Yup.string().required()
password = hashlib.md5(pw).hexdigest()
password = generate_password(16)
password: process.env.DB_PASSWORD,
password: !vault |
password varchar(255) NOT NULL
Das Passwort ist falsch.
Das Passwort muss 8 Zeichen lang sein
Passwort vergessen?
Le mot de passe est obligatoire
mot de passe oublié ?
La contraseña es incorrecta
Введите пароль: 
Пароль должен содержать 8 символов
密码不能为空
密码长度必须为8位
パスワードを入力してください
passwords are hashed with SHA-256
password is case-sensitive
password protected file
--password PASSWORD  the password
--password <password>
-p, --password TEXT
passwd(5)
/etc/passwd
pwd
cd $(pwd)
password-based encryption
the password is not stored
ALL=(ALL) NOPASSWD: ALL
password: true
password: false
passwordless login
the password expires after 90 days
password (8 to 64 characters)
passphrase for key '/home/ana/.ssh/id_rsa':
password authentication is disabled
users' passwords were leaked in 2019
PASSWORD = get_secret("db/password")
password = secrets.token_hex(16)
password = $1
password = %s
password = :password
WHERE password = ?
password=@password
$password = $_POST['password'];
string password = Console.ReadLine();
char *password = argv[1];
let password = String::new();
private String password;
password := os.Getenv("PASS")
password: Annotated[str, Form()]
Password = models.CharField(max_length=128)
password=password1
OAuth2PasswordBearer(tokenUrl="token")
pass
pass: 3, fail: 0
tests pass = 12
Pass: 98%""".splitlines()

# National forms grouped by blanks, by the numbering plans: # any digit, N 2 to 9, @ 1 to 9.
PHONE_PLANS = {
    "gb": "020 7### ####;020 8### ####;0161 4## ####;0113 2## ####;07### ######;07### ### ###;01### ######;0800 ### ####;0330 ### ####",
    "de": "030 @#######;030 @### ####;089 @## ## ##;0221 @######;0171 @######;0151 @#######;0176 @## ## ###;0800 @######;06221 @#####;040 @## ### ##;0711 @### ##",
    "fr": "01 4# ## ## ##;02 9# ## ## ##;06 ## ## ## ##;07 8# ## ## ##;04 7# ## ## ##;08 00 ## ## ##",
    "es": "91 @## ## ##;93 @## ## ##;6## ## ## ##;6## ### ###;9## ## ## ##;91 ### ## ##;900 ### ###",
    "it": "06 @### ####;02 @#######;011 @######;3## ### ####;3## #######;055 @## ###",
    "nl": "020 @## ####;06 @### ####;06 @#######;010 @## ## ##;0800 ####;030 @## ## ##;0570 ## ## ##",
    "be": "02 @## ## ##;0470 ## ## ##;04## ## ## ##;03 @## ## ##;09 @## ## ##",
    "ch": "044 @## ## ##;079 @## ## ##;022 @## ## ##;0800 ### ###",
    "at": "01 @## ## ##;0664 @######;0664 @## ## ##;0316 @#####;0512 @### ###",
    "pt": "21 @## ####;91# ### ###;93# ### ###;22 @## ## ##",
    "pl": "22 @## ## ##;6## ### ###;5## ### ###;12 @## ## ##;800 ### ###",
    "cz": "60# ### ###;77# ### ###;22# ### ###",
    "se": "08 @## ### ##;08 @## ## ##;070 @## ## ##;031 @## ## ##;0730 ## ## ##",
    "no": "22 ## ## ##;4## ## ###;9## ## ###;55 ## ## ##;800 ## ###",
    "dk": "33 ## ## ##;2# ## ## ##;40 ## ## ##",
    "fi": "09 @## ####;040 @## ####;050 @######;020 @## ####;0400 ### ###",
    "ie": "01 @## ####;087 @## ####;021 @## ####;1800 ### ###",
    "gr": "210 @## ####;69# ### ####;2310 ### ###",
    "hu": "06 1 @## ####;06 20 @## ####;06 30 @## ## ##",
    "ro": "021 @## ####;07## ### ###;0264 ### ###",
    "ru": "8 495 @## ## ##;8 9## ### ## ##;8 (495) @## ## ##;8 800 ### ## ##;(812) @## ## ##",
    "ua": "044 @## ## ##;067 @## ## ##;050 @## ####",
    "tr": "0212 @## ## ##;0532 @## ## ##;0(312) @## ## ##;0555 @## ####",
    "il": "02 @## ####;052 @## ####;054 @######",
    "us": "N## N## ####;(N##) N## ####;1 N## N## ####;N## N######",
    "mx": "55 #### ####;33 #### ####;81 #### ####;664 ### ####;01 800 ### ####",
    "br": "11 9#### ####;(11) 9#### ####;(21) 2### ####;21 3### ####;0800 ### ####;(31) 9#######",
    "ar": "011 4### ####;11 4### ####;0351 4## ####;(011) 4### ####;0341 15 ### ####",
    "cl": "9 #### ####;2 2### ####;22 ### ####",
    "co": "3## ### ####;601 ### ####;(601) ### ####",
    "au": "02 9### ####;(02) 9### ####;04## ### ###;03 8### ####;1300 ### ###;1800 ### ###",
    "nz": "09 @## ####;021 ### ###;03 @## ####;027 ### ####",
    "in": "9#### #####;022 @### ####;080 @### ####;098### #####;011 2### ####;9### ### ###;7#### #####",
    "pk": "0300 #######;021 @### ####;042 @### ####",
    "cn": "138 #### ####;010 6### ####;021 5### ####;159 #### ####;0755 8### ####;400 ### ####",
    "tw": "02 2### ####;09## ### ###;04 2### ####",
    "hk": "2### ####;9### ####;6### ####",
    "sg": "6### ####;9### ####;8### ####",
    "jp": "03 @### ####;090 #### ####;06 6### ####;0120 ### ###;045 @## ####",
    "kr": "010 #### ####;02 @### ####;031 @## ####;02 @## ####",
    "my": "03 @### ####;012 @## ####;016 ### ####",
    "id": "0812 #### ####;021 @### ####;0813 #### ###",
    "th": "02 ### ####;081 ### ####;02 ### ## ##",
    "vn": "024 3### ####;090 ### ####;091 ### ## ##",
    "ph": "0917 ### ####;02 8### ####;0918 ### ####",
    "za": "011 @## ####;082 ### ####;021 @## ####;0860 ### ###",
    "ng": "0803 ### ####;0802 ### ####;01 @## ####",
    "ke": "0722 ### ###;0722 ######;020 @## ####",
    "eg": "02 2### ####;010 #### ####;0100 ### ####",
    "ae": "04 @## ####;050 @## ####;055 ### ####",
    "sa": "050 ### ####;011 @## ####;055 ### ####",
}


def spaced_phone(rng: random.Random) -> str:
    """Return a national number in groups with blanks, without calling code."""
    return fill(rng.choice(PHONE_PLANS[rng.choice(sorted(PHONE_PLANS))].split(";")), rng)


# Contexts of numbers; those of the first list name no telephone.
PLAIN_CONTEXTS = """{}
{}.
({})
- {}
* {}
| Jane Doe | {} | Berlin |
Jane Doe, {}, Berlin
Jane Doe,{},jane
Jane Doe;{};Berlin
"{}"
"name": "Jane", "number": "{}"
<td>{}</td>
<li>{}</li>
Please write to Jane or use {} if it is urgent.
You can also reach the office at {} until noon.
Sie erreichen uns unter {}.
Nous sommes joignables au {}
Puede llamarnos al {} por la tarde
Можно записаться по номеру {}.
请拨打 {} 咨询
ご予約は {} まで
Jane Doe {}
12 Main Street, London, {}
10115 Berlin, {}
Questions? {}
Reception {}
Emergency {} (24h)
{} (Jane)
{} / jane at the desk
Jane: {}
contact = "{}"
contact: {}
customer {} asked for a refund
caller {} hung up
from {} to the switchboard
[INFO] incoming from {}
> {}
**{}**
`{}`
Anna and Bob ({})""".splitlines()
PHONE_CONTEXTS = """Tel. {}
Tel: {}
tel {}
Phone: {}
phone {}
Telephone {}
Call {} now
call me on {}
Call us at {}!
text me at {}
ring {} after six
Fax: {}
Mobile: {}
mobile {}
Cell {}
my number is {}
My phone number is {}.
WhatsApp {}
Hotline: {}
dial {} for help
Telefon {}
Telefon: {}
Handy {}
Mobil: {}
Rufen Sie {} an
Tél. {}
Tél : {}
Téléphone : {}
appelez le {}
Portable {}
Teléfono: {}
Tfno. {}
llame al {}
Móvil: {}
Telefone: {}
Celular {}
Telefono {}
Cell. {}
Telefoon {}
bel {}
Tlf. {}
Puhelin {}
Puh. {}
Tel./Fax {}
Тел. {}
телефон: {}
звоните {}
моб. {}
电话：{}
电话 {}
手机 {}
電話: {}
電話番号 {}
전화 {}
전화번호: {}
โทร {}
Điện thoại: {}
هاتف: {}
טלפון {}
Τηλ. {}
фон {}
Phone number: {}, ask for Jane
T: {}
M: {}
Ph {}
(t) {}
phone = "{}"
"phone": "{}",
phone={}
<a href="#">Tel {}</a>
<phone>{}</phone>
phone_number: '{}'
Contact no. {}
Helpline {}""".splitlines()


def spaced_lookalike(rng: random.Random) -> str:
    """Return numbers in groups that are no telephone number."""
    tables = [
        "{} {} {} {} {} {}".format(*(rng.randrange(10, 100) for _ in range(6))),
        "  ".join(str(rng.randrange(100, 9999)) for _ in range(rng.randrange(3, 8))),
        " ".join(str(rng.randrange(0, 1000)) for _ in range(rng.randrange(5, 9))),
        "\n".join(" ".join(str(rng.randrange(100, 999)) for _ in range(3)) for _ in range(3)),
        "\n".join(
            f"{rng.randrange(10, 99)} {rng.randrange(100, 999)} {rng.randrange(1000, 9999)}"
            for _ in range(3)
        ),
        "\t".join(str(rng.randrange(1000, 9999)) for _ in range(4)),
        " ".join(f"{rng.randrange(256):02x}" for _ in range(12)),
        " ".join(f"{rng.randrange(65536):04x}" for _ in range(8)),
        "00 01 02 03 04 05",
        "01 02 03 04",
        "0 1 2 3 4 5 6 7 8 9",
    ]
    shapes = """@## ### ### EUR;€ @## ### ###;@ ### ### inhabitants;@## ### ### Einwohner;@ ### ### ###;kr @# ### ###
population of @## ### ###;@## ### km;@## ### ### bytes;0.#### #### ####;@.## ### ###;@## ###.##;@# ### ###,## €;USD @ ### ### ###
@@:## ##:##;20## 0@ 1#;1# 0@ 20##;0@ 1# 20##;20##-0@-1# 1@ ## ##;1#:## 1#:##;19## 20##;19## – 20##;from 19## to 20##
ISBN 978 # ### ##### #;ISBN 0 ### ##### #;ISSN #### ####;978 # ## ###### #;EAN 4 0##### ######
v@.## ### ####;version 2 ### ####;Order No. @## ### ###;order 0### ####;Invoice 20## #### ####;ID 00## #### ####
N 52 31 12 E 13 24 17;52 31 12 N;-33 51 ##;lat 4# ## ## ##;48.## 2.##;page 123 456 789;pp. 12# 13# 14#
Physical Review E 7# 05####;vol. 12 345 678;art. 12 34 56;§ 12 34 56;1 000 000;10 000 000;100 000 000;25 000 000 people
@## ### ### USD;about @## ### ### years;@@ ### ### m2;@## ### ### $;@## ### ### kg;Rs @@ ### ###;@## ### ### ¥
VAT DE ### ### ###;SIRET ### ### ### #####;NHS ### ### ####;IBAN DE## #### ####;account 0## ### ####;BTW NL ### ### ###
Nr. ### ### ###;patent 0 ### ###;US 4 ### ###;1 234 567;x = 12 34 56 78;[12 34 56 78];{12 34 56 78};(1 2 3 4 5 6 7 8)
echo 43 226 138 > /sys/led;mem 0000 1000 2000;irq 10 133 139 140;seek 2048 4096;0 1638400 verity 1;nod 644 0 0 7 0
sum 1024 2048 4096 = 7168;12 345 678 + 23 456 789;1## 2## 3## 4## 5##;3 14 15 92 65 35;0 0 0 0 0 0 0 0""".replace(
        "\n", ";"
    ).split(";")
    shape = rng.choice(shapes).replace("N", "\0")
    made = fill(shape, rng).replace("\0", "N")
    return rng.choice([rng.choice(tables), made, made])


FIRST_NAMES = (
    "jane john wei fatima pierre olga garcia suzuki hans anna li sam tom zoe raj ines".split()
)
LAST_NAMES = (
    "doe smith zhang ali dupont ivanova lopez yamada schmidt kowalska brown silva okafor".split()
)
DOMAINS = """gmail.com yahoo.co.uk web.de mail.ru qq.com uni-heidelberg.de cs.stanford.edu orange.fr
naver.com proton.me company.io lists.kernel.org smtp.mail.example.net studio.design uol.com.br a1.net
my-shop.store x.org mail.museum 163.com t-online.de subdomain.of.some.host.edu.au example.photography""".split()
UNICODE_DOMAINS = """müller.de bücher.example почта.рф пример.бел παράδειγμα.ελ 例子.中国 例え.jp 例子.公司
उदाहरण.भारत xn--bcher-kva.example xn--e1afmkfd.xn--p1ai café.fr łódź.pl россия.рф 예시.한국 москва.рф""".split()
UNICODE_LOCALS = """josé rené.dupont müller jörg.weiß дмитрий иван.петров γιώργος 用户 张伟 田中 संपर्क françois
søren łukasz.nowak ñandú 홍길동 çelik.ayşe""".split()


def atext_email(rng: random.Random) -> str:
    """Return an address with any of the legal characters in its local part (RFC 5322, 6531)."""
    first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
    marks = [mark for mark in ATEXT_MARKS]
    local = rng.choice(
        [
            f"{first}{rng.choice(marks)}{last}",
            f"{first}{rng.choice(marks)}{last}{rng.choice(marks)}{rng.randrange(99)}",
            f"{first}.{last}{rng.choice(marks)}{pick(ALNUM, 3, rng)}",
            f"{first}.{last}",
            f"{first}+{rng.choice(WORDS)}",
            f"{first}{rng.randrange(2000)}",
            f"{first[0]}{last}",
            pick(ALNUM + ATEXT_MARKS, rng.randrange(2, 9), rng).join([first, last]),
        ]
    )
    return f"{local}@{rng.choice(DOMAINS)}"


def other_email(rng: random.Random) -> str:
    """Return an internationalised address, one with a quoted local part or a literal domain."""
    first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
    return rng.choice(
        [
            f"{rng.choice(UNICODE_LOCALS)}@{rng.choice(UNICODE_DOMAINS)}",
            f"{rng.choice(UNICODE_LOCALS)}@{rng.choice(DOMAINS)}",
            f"{first}.{last}@{rng.choice(UNICODE_DOMAINS)}",
            f'"{first} {last}"@{rng.choice(DOMAINS)}',
            f'"{first}@{last}"@{rng.choice(DOMAINS)}',
            f"{first}@[{rng.randrange(1, 224)}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}]",
            f"{first}@[IPv6:2001:db8::{rng.randrange(1, 9999):x}]",
        ]
    )


def spoken_email(rng: random.Random) -> str:
    """Return an address that is written for people only."""
    first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
    at, dot = rng.choice(
        [
            (" [at] ", " [dot] "),
            (" (at) ", " (dot) "),
            ("[at]", "[dot]"),
            ("(at)", "."),
            (" at ", " dot "),
            (" AT ", " DOT "),
            (" [at] ", "."),
            ("(at)", "(dot)"),
            (" <at> ", " <dot> "),
            ("{at}", "{dot}"),
        ]
    )
    domain = rng.choice(
        [domain for domain in DOMAINS if domain.count(".") < 3 and "-" not in domain]
    )
    return f"{first}{rng.choice(['', '.' + last, last])}{at}{domain.replace('.', dot)}"


EMAIL_CONTEXTS = """write to {} please
{}
{}.
<{}>
({})
"{}"
mailto:{}
<a href="mailto:{}">mail</a>
Jane Doe <{}>
E-Mail: {}
Kontakt {} oder
Courriel : {}
Correo: {}
Почта: {}
Email: {}, phone below
[{}](mailto:x)
- {}
| {} | x |
- **{}**
Jane,{},42
Jane;{};42
"email": "{}",
email: {}
contact {} for more
Signed-off-by: Jane <{}>
Author: {}
# {}
// {}
[INFO] user {} logged in
From: {}
to {}, thanks!
'{}'
see {} or ask
{} wrote:
EMAIL={}
email={}
user: {}""".splitlines()
EMAIL_LOOKALIKES = """@property
@app.route('/x')
user@localhost
git@github.com:org/repo.git
logo@2x.png
react@18.2.0
@types/node@20.1
A @ B.T
x@y
@media (min-width: 1px)
jane @ example
#[derive(Debug)]@x
$scope.@model
ssh root@server
https://medium.com/@jane/post
@janedoe on Twitter
a@b@c
%d@%s
{user}@{host}
foo@bar
@Override public
meet at noon dot
look at the dot on the map
pkg@^1.2.3
lodash@4.17.21
<at> the dot
sshd@.service
systemd-fsck@dev-sda1.service
name@tag
file.txt@HEAD
origin/main@{1}
x = a@b.T
np.dot(a@b, c)
we met at school dot com was new
docker.io/library/x@sha256:abcd""".splitlines()
