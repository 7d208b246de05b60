"""Keys of vendors and local telephone numbers are found, and what looks alike stays.

In a template (see `random_forms`) `#` is a random digit, too.
"""

import random
import re

from prelude import pl, pytest
from random_forms import NUMBERS, fill

from assets.filtered.pii.find_pii import find_pii
from assets.filtered.pii.pii_files import read_key_forms
from assets.filtered.pii.secret_keys import key_start
from resources.settings.filtering.filter_steps import PiiConfig

UUID = "{h*8}-{h*4}-4{h*3}-a{h*3}-{h*12}"
TOKENS = f"""
Adafruit | aio_{{a*28}}
age | AGE-SECRET-KEY-1{{u*58}}
Airtable | pat{{a*14}}.{{h*64}}
Aiven | AVNS_{{w*20}}
Alchemy | alcht_{{a*30}}
Alibaba | LTAI{{a*20}}
Anthropic | sk-ant-api03-{{a*93}}AA
Asana | 1/{{d*16}}:{{h*32}}
Atlassian | ATATT3x{{a*180}}
AWS | AKIA{{u*16}}
AWS temporary | ASIA{{u*16}}
Azure | {{a*3}}8Q~{{a*34}}
Bitbucket | ATBB{{a*32}}
Brevo | xkeysib-{{h*64}}-{{a*16}}
Buildkite | bkua_{{h*40}}
CircleCI | CCIPAT_{{a*22}}_{{h*40}}
Clojars | CLOJARS_{{h*60}}
Cloudflare | v1.0-{{h*24}}-{{h*146}}
Contentful | CFPAT-{{w*43}}
crates.io | cio{{a*32}}
Databricks | dapi{{h*32}}
DigitalOcean | dop_v1_{{h*64}}
Discord webhook | https://discord.com/api/webhooks/{{d*18}}/{{w*68}}
Docker | dckr_pat_{{a*27}}
Doppler | dp.pt.{{a*43}}
Dropbox | sl.{{a*135}}
Duffel | duffel_live_{{a*43}}
Dynatrace | dt0c01.{{u*24}}.{{u*64}}
E2B | e2b_{{h*40}}
EasyPost | EZAK{{a*54}}
ElevenLabs | sk_{{h*48}}
Facebook | EAA{{a*150}}
Figma | figd_{{a*40}}
Firecrawl | fc-{{h*32}}
Fireworks | fw_{{a*24}}
Flutterwave | FLWSECK_TEST-{{h*32}}-X
Fly.io | fo1_{{a*43}}
Frame.io | fio-u-{{a*64}}
GitHub | ghp_{{a*36}}
GitHub fine-grained | github_pat_{{a*22}}_{{a*59}}
GitLab | glpat-{{w*19}}x
GitLab runner | glrt-{{a*20}}
Google | AIza{{a*35}}
Google OAuth | GOCSPX-{{a*28}}
Google access | ya29.{{a*120}}
Grafana | glsa_{{a*32}}_{{h*8}}
Groq | gsk_{{a*52}}
HashiCorp Terraform | {{a*14}}.atlasv1.{{a*64}}
HashiCorp Vault | hvs.{{a*90}}
Heroku | HRKU-AA{{w*57}}x
HubSpot | pat-na1-{UUID}
Hugging Face | hf_{{a*34}}
Infracost | ico-{{a*32}}
Intra42 | s-s4t2ud-{{h*64}}
JFrog | AKCp{{a*69}}
Klaviyo | pk_{{h*34}}
LangFuse | sk-lf-{UUID}
LangSmith | lsv2_pt_{{h*32}}_{{h*10}}
Lark webhook | https://open.feishu.cn/open-apis/bot/v2/hook/{UUID}
LaunchDarkly | sdk-{UUID}
Linear | lin_api_{{a*40}}
Mailchimp | {{h*32}}-us12
MailerSend | mlsn.{{h*64}}
Mailgun | key-{{h*32}}
Mapbox | sk.eyJ{{a*80}}.{{a*22}}
Neon | napi_{{l*64}}
Netlify | nfp_{{a*36}}
New Relic | NRAK-{{u*27}}
Notion | ntn_{{a*46}}
npm | npm_{{a*36}}
NuGet | oy2{{l*43}}
NVIDIA | nvapi-{{a*64}}
Octopus Deploy | API-{{u*26}}
OpenAI | sk-proj-{{a*74}}
OpenAI old | sk-{{a*48}}
OpenRouter | sk-or-v1-{{h*64}}
OpenShift | sha256~{{a*43}}
Packagist | packagist_uut_{{h*68}}
Perplexity | pplx-{{a*48}}
Pinecone | pcsk_{{a*6}}_{{a*62}}
Plaid | access-production-{UUID}
PlanetScale | pscale_tkn_{{a*43}}
PostHog | phx_{{a*43}}
Postman | PMAK-{{h*24}}-{{h*34}}
Prefect | pnu_{{a*36}}
Pulumi | pul-{{h*40}}
PyPI | pypi-AgEIcHlwaS5vcmc{{a*140}}
RapidAPI | {{l*10}}msh{{l*15}}p1{{l*6}}jsn{{l*12}}
Razorpay | rzp_live_{{a*14}}
ReadMe | rdme_{{l*70}}
Replicate | r8_{{a*37}}
Resend | re_{{a*8}}_{{a*24}}
RubyGems | rubygems_{{h*48}}
Salesforce | 00D{{a*12}}!{{a*96}}
Scaleway | SCW{{u*17}}
SendGrid | SG.{{a*22}}.{{a*43}}
Sentry | sntrys_{{a*80}}
Shippo | shippo_live_{{h*40}}
Shopify | shpat_{{h*32}}
Slack | xoxb-{{d*12}}-{{d*12}}-{{a*24}}
Slack webhook | https://hooks.slack.com/services/T{{u*9}}/B{{u*10}}/{{a*24}}
SonarQube | squ_{{h*40}}
Square | sq0csp-{{a*43}}
Stripe | sk_live_{{a*24}}
Stripe webhook | whsec_{{a*32}}
Supabase | sbp_{{h*40}}
Tailscale | tskey-auth-{{a*17}}-{{a*32}}
Tavily | tvly-dev-{{a*32}}
Telegram | {{d*9}}1:AA{{w*32}}x
Together | tgp_v1_{{a*43}}
Trello | ATTA{{h*64}}
Twitch | oauth:{{l*30}}
Typeform | tfp_{{a*44}}_{{a*14}}
Voyage | pa-{{w*42}}x
WakaTime | waka_{UUID}
WeCom webhook | https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={UUID}
xAI | xai-{{a*80}}
Yandex | y0_{{a*58}}
Zapier webhook | https://hooks.zapier.com/hooks/catch/{{d*7}}/{{l*7}}
"""
PLACES = (
    """curl -H 'Authorization: Bearer {a*40}' https://h.io
"Authorization": "Bearer {a*24}"
headers = {"Authorization": "Token {h*40}"}
Authorization: Token {h*40}
Proxy-Authorization: Basic dXNlcjpwN3{a*8}
authorization: {h*40}
X-API-Key: {h*34}
x-api-key: {a*24}
{"X-Auth-Token": "{h*32}"}
Cookie: sessionid={l*32}; theme=dark
Set-Cookie: sid={a*40}; Path=/; HttpOnly
machine api.h.io login jane password {l*5}7
machine api.h.io\\n  login jane\\n  password {l*12}
{"auths": {"h.io": {"auth": "amFuZTpz{a*8}"}}}
db.h.io:5432:app:jane:{l*9}
*:*:*:jane:{a*12}
//registry.npmjs.org/:_authToken={a*36}
_auth=amFuZTpz{a*8}
    client-key-data: LS0tLS1CRUdJTiBS{a*400}==
    token: {a*40}
API_KEY={h*32}
access_token: '{a*20}'
client_secret = "{h*40}"
HEROKU_API_KEY="""
    + UUID
)
SENTENCES = ("{}", "The key is {}.", "export X={}", '"value": "{}",', "use `{}` here", "密钥：{}。")


def redacted(texts: list[str]) -> list[str]:
    """Return texts as they are after all personal data is replaced."""
    return find_pii(pl.Series(texts, dtype=pl.String), PiiConfig())[0].to_list()


def test_keys_of_100_vendors_are_found() -> None:
    rng = random.Random(51)
    rows = [line.split(" | ") for line in TOKENS.strip().splitlines()]
    planted = [(vendor, fill(form, rng)) for vendor, form in rows for _ in range(10)]
    texts = redacted([rng.choice(SENTENCES).format(key) for _, key in planted])
    left = [vendor for (vendor, key), text in zip(planted, texts, strict=True) if key[-12:] in text]
    assert len(rows) >= 100
    assert len(left) <= len(planted) // 100, left


@pytest.mark.parametrize("place", PLACES.splitlines())
def test_what_stands_where_a_secret_does_is_found(place: str) -> None:
    rng = random.Random(7)
    longest = max(re.findall(r"\{\w\*\d+\}", place), key=lambda part: int(part[3:-1]))
    secrets = [fill(longest, rng) for _ in range(20)]
    texts = [fill(place.replace(longest, own), rng).replace("\\n", "\n") for own in secrets]
    found = redacted(texts)
    left = [text for own, text in zip(secrets, found, strict=True) if own in text]
    assert len(left) <= 1, left


def test_the_place_of_a_key_stays() -> None:
    text = "https://hooks.slack.com/services/T024BE7LD/B01ABCDEF23/x4K9vQ2mZ7rT4wLp1Yb6NsHd"
    assert redacted(
        [text, "Cookie: lang=en; theme=dark", "Authorization: Basic amFuZTpzM2NyM3Q="]
    ) == [
        "https://hooks.slack.com/services/<KEY>",
        "Cookie: lang=en; theme=dark",
        "Authorization: Basic <KEY>",
    ]


def test_each_form_is_a_clue_and_a_class() -> None:
    for form in read_key_forms():
        low, _, high = form.length.partition("-")
        assert int(low) <= int(high or low), form
        re.compile(key_start(form))


LOOKALIKES = """Authorization: Bearer YOUR_ACCESS_TOKEN
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Basic dXNlcm5hbWU6cGFzc3dvcmQ=
a basic introduction to bearer instruments and the bearer certificates of 1920
X-API-Key: your-api-key-goes-here-1234
Cookie: consent=accepted; theme=dark
api_key_id: {h*32}
access_token_hash = {h*64}
commit {h*40}
sha256:{h*64}
sk-learn-estimator-doc-link-{l*3}
patient.{h*8} pattern pat-an-example
dapi-gateway and dapiserver
r8_g8b8a8_unorm and r8g8b8a8
key-{l*12}
sdk-{d*2}.{d*1}.{d*3}
api-version-{d*4}-{d*2}-{d*2}
re_match_{l*8}_{l*10}
npm_config_registry_{l*8}
{h*8}-{h*4}-4{h*3}-a{h*3}-{h*12}
https://hooks.slack.com/services/
hf_transfer hf_hub_download_with_progress_bar_of_files
secret_santa_wish_list_for_all_of_the_family_in_{d*4}
oauth:authorization_code_grant_flow_of_two
machine learning login form password field
10:20:30:40:50 and a:{d*4}:b:c:d"""


def test_what_looks_like_a_key_stays() -> None:
    rng = random.Random(3)
    texts = [fill(form, rng) for form in LOOKALIKES.splitlines() for _ in range(40)]
    changed = [text for text, after in zip(texts, redacted(texts), strict=True) if text != after]
    assert len(texts) >= 1_000
    assert changed == []


# A country's mobile numbers and lines as they are written at home, and a sentence around them.
PHONES = """IN | 98765 4####;098###-#####;९८७६५ ४३२१० | मेरा मोबाइल {} है
CN | 138-####-####;010-6###-####;(010) 6####### | 我的手机是 {} 请来电
US | (415) 2##-####;415-2##-####;415.2##.#### | call me at {} today
ID | 0812-3###-####;(021) 5######;0813 4### #### | Hubungi saya di {} malam ini
PK | 0301-2######;(042) 3#######;0321 4###### | mobile {} par call karein
NG | 0803-4##-####;0806 2## ####;0803.4##.#### | call {} after work
BR | (11) 98###-####;(21) 3###-####;11 9#### #### | Me liga no {} hoje
BD | 01712-3#####;01812-######;০১৭১২-৩৪৫৬৭৮ | মোবাইল {} এ ফোন করুন
RU | 8 (912) 3##-##-##;8-495-2##-##-##;8 912 3## ## ## | Мой телефон {} звоните
ET | 091-1##-####;0911-2#####;091 1## #### | ስልክ {} ነው
MX | 55-1234-####;(55) 5###-####;55 1### #### | mi celular es {} gracias
JP | 090-1###-####;03-3###-####;(03) 3###-#### | 私の携帯は {} です
EG | 010-1234-####;0100-#######;٠١٠ ١٢٣٤ ٥٦٧٨ | هاتف المكتب {} مساء
PH | 0917-2##-####;(02) 8###-####;0918 3## #### | Text me at mobile {} tonight
CD | 081-2##-####;0998-######;081 2## #### | appelez le {} ce soir
VN | 0912-3##-###;0912.3##.###;091 2## ## ## | điện thoại {} nhé
IR | 0912-3##-####;021-2#######;۰۹۱۲ ۳۴۵ ۶۷۸۹ | شماره تلفن {} است
TR | 0532-2##-##-##;(0212) 3## ## ##;0532 2## ## ## | Beni {} numarasından ara
DE | 0171-3######;030/23####;0151/2####### | Ruf mich unter {} an
TH | 081-2##-####;02-2##-####;๐๘๑-๒๓๔-๕๖๗๘ | โทร {} นะ
GB | 07700-9#####;020-7###-####;(0161) 4##-#### | ring me on {} please
TZ | 0712-3##-###;0754-3#####;0712 3## ### | simu yangu {} asante
FR | 06.1#.##.##.##;01-42-##-##-##;06 1# ## ## ## | Appelle le {} ce soir
ZA | 082-3##-####;(011) 4##-####;082 3## #### | my cell is {} now
IT | 347-2######;02-7#######;347 2## #### | chiamami, cell {} grazie
KE | 0712-3#####;0722-3##-###;0712 3## ### | simu yangu ni {} tafadhali
MM | 09-45#-######;09-78#######;09 45# ### ### | ဖုန်း {} ပါ
CO | (601) 3##-####;310-2##-####;310 2## #### | mi celular {} gracias
KR | 010-2###-####;02-5##-####;(031) 2##-#### | 전화 {} 주세요
UG | 0772-3#####;0701-2#####;0772 3##### | call {} in the evening
ES | 612-3##-###;91-3##-##-##;612 3## ### | llámame, móvil {} gracias"""


def fill_number(form: str, rng: random.Random) -> str:
    """Return a number with random digits, none twice in a row."""
    digits = iter(rng.choices("23456789", k=form.count("#")))
    return re.sub("#", lambda _: next(digits), form)


def test_local_numbers_of_30_countries_are_found() -> None:
    rng = random.Random(30)
    rows = [line.split(" | ") for line in PHONES.splitlines()]
    planted = [
        (country, sentence, fill_number(form, rng))
        for country, forms, sentence in rows
        for form in forms.split(";")
        for _ in range(10)
    ]
    texts = redacted([sentence.format(number) for _, sentence, number in planted])
    left = [
        (country, number)
        for (country, _, number), text in zip(planted, texts, strict=True)
        if number[-4:] in text
    ]
    assert len(rows) >= 30
    assert len(left) <= len(planted) // 20, left


def test_of_3000_numbers_that_look_alike_at_most_one_is_touched() -> None:
    rng = random.Random(4)
    forms = NUMBERS.splitlines()
    texts = [fill(form, rng) for form in forms for _ in range(1 + 3_000 // len(forms))]
    changed = [text for text, after in zip(texts, redacted(texts), strict=True) if text != after]
    assert len(texts) >= 3_000
    assert len(changed) <= 1, changed
