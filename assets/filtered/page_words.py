"""Function words of many languages, and the phrases that frame web pages.

Written for Tokenmill. Function words (articles, prepositions, pronouns, conjunctions, auxiliaries)
make up a third to a half of prose in most languages, and next to nothing of menus, keywords and
noise. A text is held against all languages at once, so that its language need not be known; Han and
kana entries are single characters.
"""

FUNCTION_WORDS = """
en the of and to in a is that for it as with was on be by are this or from at not but have an they
en you which his he i we my she her had has were been their can will if all one who would there what
en so when no do your about them then its me into more than only could our him how up out may also
de der die das und in zu den von mit sich des auf für ist im dem nicht ein eine als auch es an werden
de aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur
de oder aber vor zur bis mehr durch man sein wurde sei ich wenn kann diese dieser
fr de la le et les des en un une du à est dans qui que par pour au il sur pas plus ne se ce sont avec
fr ou son sa cette aux ses mais comme nous vous elle on je être été d l qu n s c si leur y ces
es de la que el en y a los del se las por un para con no una su al lo como más o pero sus le ha me si
es sin sobre este ya entre cuando todo esta ser son dos también fue había era muy hasta desde
pt o os e do da em um que não uma os no na por mais as dos como mas foi ao ele das tem à seu sua ou
pt quando muito há nos já está eu também só pelo pela até isso ela com para é ser se
it di e il che la in un a per è una sono del non con si da come le dei alla al i lo nel della più gli
it anche o ma se ha delle questo io mi ci ed essere nella dal sul
nl de het een en van in is dat op te zijn met voor niet aan er om ook als dan maar bij of uit nog naar
nl door over ze die hij deze worden wordt kan u je ik wat
sv och i att det som en på är av för med den till inte om ett har de jag var så men från vi kan man
sv eller när vid också
da og i at det en den til er som på de med han af for ikke der var mig sig men et har om vi fra kan
no og i det er på til som en å for av at med har den ikke et de fra kan om men eller seg ble
fi ja on ei että se oli hän mutta ovat kun niin kuin tai joka myös sen olla voi hän ole siitä
pl w i na z nie do się że jest to o jak od po za przez są oraz dla czy a był co ma tego lub być ale
cs a se v na je že o s z do i to k ve pro za by ale si po jako jeho však nebo jsou který od
sk a sa v na je že o s z do to k vo pre za by ale si ako alebo sú ktorý od
hu a az és hogy nem is egy ez azt meg de csak mint van ha már volt vagy el aki be ki le fel
ro și de a în la cu pe nu că o un este din se pentru mai sau ce care sunt fi prin al ale
hr i u je se na da za od su s a o koji kao ne iz to ili što bi po do
sr и у је се на да за од су са а о који као не из то или што би по до
sl in je v na se da za so ki z ne pa tudi s o kot po od ali
bg и на да за се от в с не по е са като ще че или това
ru и в не на что с по как это а к но из у за от так о для бы он все его же или до при был то я ты мы
ru вы они она если будет можно
uk і в не на що з та до як це у за від про але його для або при був він й бути
el και το να η ο του της την με για που από στο τον τα είναι στη των οι σε δεν ένα τη στην μια τους θα
el αν ή ως αυτό κατά σας
tr ve bir bu için ile de da olarak daha gibi çok olan ne en kadar o her veya ama ki değil sonra
id yang dan di untuk dengan ini dari pada tidak dalam itu akan adalah ke atau oleh juga dapat anda
vi và của là các có cho được trong một không với này những để người khi đã từ tôi về như đến cũng hay
ca de la i que el en a un els les per del una amb no és al es o com més seu si són
gl de a o e que do da en un non se os unha as para por con no na é como máis ou
eu eta da ez du dira bat dute izan edo ere hau egin ditu
lv un ir ar no par ka uz kas tas vai bet kā tiek lai nav šo
lt ir kad yra su iš į tai kaip bet ar nuo už arba
et ja on ei et see ka ta oli kui või mis ning seda
eo la kaj de en estas al por ke ne kun li ĝi aŭ el
ar في من على أن إلى هذا التي عن مع لا ما هو هذه كان الذي أو بين كل و
fa و در به از که این را با است برای آن یک شود یا تا بر می های
he של את על לא זה הוא עם כי או אל גם כל אם היא הם
hi के में है की और से का को हैं पर यह एक कि भी ने लिए नहीं या तो हो इस
bn ও এই এবং না করে একটি জন্য থেকে করা যে বা হয়
ta மற்றும் ஒரு இந்த என்று அல்லது உள்ள
ko 이 그 및 수 있는 있습니다 것 또는 등 한 할 이것은 합니다 하는 위해 때 더 대한 를 의 은 는 에
zh 的 了 是 在 和 有 不 这 以 為 为 与 或 我 他 你 们 之 也 而 及 其 于 個 个 到 就 被 将 可 所 会 要 上 這
ja の は を に が で と も た て し る い す ま な れ ら こ さ か り あ っ く
th ที่ และ ใน ของ ไม่ เป็น มี ได้ ให้ จะ การ หรือ นี้ กับ
"""

# Around the text of a page: cookies, accounts, newsletters, notices, errors, menus.
FRAME_PHRASES = """
en cookie; cookies; privacy policy; privacy; terms of use; terms of service; terms and conditions
en terms; all rights reserved; rights reserved; copyright; ©; trademarks; trademark; disclaimer
en newsletter; unsubscribe; subscribe; subscription; sign up; sign in; signed in; log in; logged in
en login; logout; register; registered; your account; my account; an account; forgot your password
en password; remember me; your email; email address; e-mail address; inbox; home; about us; about
en contact us; contact; sitemap; site map; faq; help; careers; press; advertise; advertising; ads
en cart; checkout; wishlist; follow us; share; share this; tweet; facebook; twitter; instagram
en linkedin; pinterest; youtube; rss; comments; comment; reply; leave a reply; like this; print
en skip to content; back to top; menu; search; accept; accept all; reject; decline; settings
en preferences; consent; partners; vendors; personalised; personalized; personal information
en personal data; third parties; this site; this website; our site; our website; website; browser
en javascript; enable javascript; loading; 404; 403; 500; 503; not found; page not found; access denied
en permission; try again; administrator; error; moved or deleted; be reproduced; liable; liability
en warranty; governed by; these terms; this policy; this agreement; your use; by using; legal notice
en is for sale; domain; parking; members; membership; free trial; subscribers; imprint; recent posts
en archives; categories; tags; related; previous; next; show more; read more; powered by; session
en store information; access information; device; measure; audience; legitimate interest; ad
de cookie; cookies; datenschutz; datenschutzerklärung; impressum; agb; nutzungsbedingungen; alle rechte
de vorbehalten; newsletter; abonnieren; abo; anmelden; abmelden; anmeldung; abmeldung; registrieren
de registrierung; passwort; konto; benutzerkonto; startseite; kontakt; über uns; suche; warenkorb; hilfe
de teilen; folgen; kommentare; kommentar; drucken; e mail adresse; nach oben; akzeptieren; ablehnen
de einstellungen; zustimmung; einwilligung; webseite; website; haftung; urheberrecht; seite nicht gefunden
de nicht gefunden; zugriff verweigert; fehler; später noch einmal; mwst; versandkosten; karriere; redaktion
fr cookies; confidentialité; mentions légales; conditions; droits réservés; reproduction; inscrivez; compte
fr connexion; se connecter; connecté; mot de passe; accueil; contact; plan du site; qui sommes; recherche
fr panier; aide; partager; suivez; commentaires; imprimer; adresse e mail; e mail; désabonner; abonner
fr accepter; refuser; partenaires; appareil; navigation; site; introuvable; accès refusé; erreur; haut de page
es cookies; privacidad; aviso legal; términos; condiciones; derechos reservados; reproducción; boletín
es suscríbase; suscribirse; cuenta; regístrese; registrarse; iniciar sesión; contraseña; inicio; contacto
es mapa del sitio; quiénes somos; buscar; carrito; ayuda; compartir; síganos; comentarios; imprimir; enviar
es aceptar; rechazar; socios; dispositivo; sitio; sitio web; correo; no encontrada; acceso denegado; error
it cookie; privacy; note legali; termini; condizioni; diritti riservati; newsletter; iscriviti; iscrizione
it account; accedi; registrati; password; home; contatti; mappa del sito; chi siamo; cerca; carrello; aiuto
it condividi; seguici; commenti; stampa; accetta; rifiuta; sito; sito web; e mail; non trovata; accesso negato
pt cookies; privacidade; termos; condições; direitos reservados; newsletter; subscrever; assine; conta; entrar
pt registe; cadastre; senha; palavra passe; início; contacto; contato; mapa do site; quem somos; pesquisar
pt buscar; carrinho; ajuda; partilhar; compartilhar; siga; comentários; imprimir; aceitar; recusar; rejeitar
pt parceiros; dispositivo; site; e mail; não encontrada; acesso negado; erro; página
nl cookies; privacy; voorwaarden; rechten voorbehouden; nieuwsbrief; inschrijven; aanmelden; inloggen; account
nl wachtwoord; home; contact; over ons; zoeken; winkelwagen; hulp; delen; volg ons; reacties; afdrukken
nl accepteren; weigeren; instellingen; partners; apparaat; website; niet gevonden; toegang geweigerd; fout
pl cookies; ciasteczka; prywatności; regulamin; prawa zastrzeżone; newsletter; zapisz; zaloguj; zarejestruj; konto
pl konta; hasło; hasła; strona główna; kontakt; o nas; szukaj; koszyk; pomoc; udostępnij; obserwuj; komentarze
pl drukuj; akceptuj; odrzuć; ustawienia; partnerzy; urządzeniu; strony; witryny; serwis; nie znaleziono; dostępu; błąd
sv cookies; kakor; integritetspolicy; villkor; rättigheter; nyhetsbrev; prenumerera; logga in; konto; lösenord
sv hem; startsida; kontakt; om oss; sök; varukorg; hjälp; dela; följ oss; kommentarer; skriv ut; acceptera; avvisa
sv inställningar; webbplats; webbplatsen; hittades inte; åtkomst nekad; fel; e post; e postadress
tr çerez; çerezler; çerezleri; gizlilik; koşulları; hakları saklıdır; bülten; abone; üye; giriş; kayıt; hesap
tr hesabınız; şifre; şifremi; ana sayfa; iletişim; hakkımızda; ara; sepet; yardım; paylaş; takip; yorum; yazdır
tr kabul; reddet; ayarlar; site; sitesi; bulunamadı; erişim; hata; e posta
ru cookie; файлы cookie; конфиденциальности; условия; права защищены; рассылка; подписаться; подпишитесь; подписка; войти
ru вход; регистрация; зарегистрироваться; аккаунт; пароль; главная; контакты; о нас; поиск; корзина; помощь; поделиться
ru комментарии; комментариев; печать; принять; отклонить; настройки; сайт; сайта; сайте; не найдена; доступ запрещен; ошибка
uk cookie; конфіденційності; умови; права захищені; розсилка; підписатися; увійти; реєстрація; пароль; головна; контакти
uk про нас; пошук; кошик; допомога; поділитися; коментарі; прийняти; відхилити; сайт; сайту; не знайдено; помилка
zh cookie; cookies; 隐私; 條款; 条款; 版权所有; 版權所有; 登录; 登錄; 登入; 注册; 註冊; 密码; 密碼; 首页; 首頁; 联系我们; 聯絡我們; 关于我们
zh 關於我們; 搜索; 搜尋; 购物车; 購物車; 帮助; 分享; 关注; 评论; 評論; 打印; 接受; 拒绝; 设置; 网站; 網站; 订阅; 訂閱; 邮箱; 返回顶部; 未找到; 拒绝访问
ja cookie; クッキー; プライバシー; 利用規約; 著作権; 無断; 転載; ログイン; 会員; 登録; パスワード; ホーム; トップ; お問い合わせ; サイトマップ; 会社概要
ja 検索; カート; ヘルプ; シェア; フォロー; コメント; 印刷; 同意; 拒否; 設定; サイト; メールマガジン; 配信; 見つかりません; アクセス; エラー
ko 쿠키; 개인정보; 이용약관; 저작권; 로그인; 회원가입; 비밀번호; 홈; 문의; 회사소개; 검색; 장바구니; 도움말; 공유; 댓글; 인쇄; 동의; 거부; 설정; 사이트; 뉴스레터; 구독
* gmbh; ltd; inc; llc; co; corp; s a; dsgvo; gdpr; login; email; newsletter; facebook; twitter; instagram; youtube
"""

# At the end of a teaser, before the rest of the page.
MORE_PHRASES = r"""
read (?:more|on|the (?:rest|full)|full)|continue(?: reading)?|(?:full|whole) (?:article|story|text)
|more *(?:\.\.\.|…|»|→|>)|show more|see more|learn more|view (?:more|all)|keep reading|click here
|subscri\w+ (?:to|only)|subscribers only|free trial|free articles|log in|sign (?:in|up)|register
|enable javascript|\[\+ ?\d+ ?(?:chars|words)?\]
|weiter ?lesen|mehr (?:lesen|erfahren|dazu)|zum (?:ganzen )?artikel|weiter *(?:\.\.\.|…)
|lire (?:la suite|plus|l['’]article)|en savoir plus|suite *(?:\.\.\.|…)
|leer más|seguir leyendo|sigue leyendo|continuar leyendo|ver más|más información
|leggi (?:tutto|di più|altro|l['’]articolo)|continua(?: a leggere)?|scopri di più
|ler mais|leia mais|continu(?:e|ar) (?:a )?l\w+|saiba mais|ver mais
|lees (?:meer|verder)|meer (?:lezen|informatie)|verder lezen
|läs (?:mer|vidare|hela)|fortsätt läsa|læs (?:mere|videre)|les (?:mer|videre)|lue lisää
|czytaj (?:więcej|dalej|całość)|więcej|dowiedz się więcej|číst (?:dál|více)|celý článek|tovább
|devamını? (?:oku|gör)\w*|devamı|daha fazla
|читать (?:далее|дальше|полностью|весь)|далее|подробнее|ещё|читати (?:далі|більше)|детальніше
|διαβάστε περισσότερα|περισσότερα|إقرأ المزيد|اقرأ المزيد|المزيد|ادامه مطلب|और पढ़ें
|阅读更多|閱讀更多|继续阅读|繼續閱讀|阅读全文|閱讀全文|查看全文|查看更多|更多|全文|展开
|続きを(?:読む|見る)|もっと(?:見る|読む)|詳しくは|全文を読む|더 보기|더보기|계속 읽기|자세히|อ่านต่อ|xem thêm|đọc tiếp|selengkapnya|baca
"""
