"""Codes of the languages that a detector can answer, and other spellings of them.

The codes are those of fastText's lid.176, of langdetect and of the families of close languages
(assets/filtered/language/detect_language.py); the spellings are ISO 639-2 and -3, English names,
and codes of countries that are taken for languages.
"""

from __future__ import annotations

TABLE = """
af afr afrikaans, als alemannic, am amh amharic, an arg aragonese, ar ara arabic, arb, arz,
as asm assamese, ast asturian, av ava avaric, az aze azerbaijani, azb, ba bak bashkir, bar bavarian,
bcl bikol, be bel belarusian, bg bul bulgarian, bh bihari, bn ben bengali, bo bod tib tibetan, bos,
bpy bishnupriya, br bre breton, bs bosnian, bxr buryat, ca cat catalan, cbk chavacano,
ce che chechen, ceb cebuano, ckb sorani, cmn, cnr montenegrin, co cos corsican,
cs ces cze cz czech, cv chv chuvash, cy cym wel welsh, da dan dk danish, de deu ger german, diq,
dsb, dty dotyali, dv div dhivehi, el ell gre gr greek, eml emilian, en eng english,
eo epo esperanto, es spa spanish, et est estonian, eu eus baq basque, fa fas per persian farsi,
fi fin finnish, fil filipino, fr fra fre french, frr, fy fry frisian, ga gle irish, gd gla gaelic,
gl glg galician, gn grn guarani, gom konkani, gu guj gujarati, gv glv manx, he heb iw hebrew,
hi hin hindi, hif, hr croatian, hrv, hsb sorbian, ht hat haitian, hu hun hungarian, hy hye arm
armenian, ia ina interlingua, id ind in indonesian, ie ile interlingue, ilo ilocano, io ido,
is isl ice icelandic, it ita italian, ja jpn jp japanese, jbo lojban, jv jav jw javanese,
ka kat geo georgian, kk kaz kazakh, km khm khmer, kn kan kannada, ko kor kr korean, krc,
ku kur kurdish, kv kom komi, kw cor cornish, ky kir kyrgyz, la lat latin, lb ltz luxembourgish,
lez lezgian, li lim limburgish, lmo lombard, lo lao, lrc luri, lt lit lithuanian, lv lav latvian,
mai maithili, mg mlg malagasy, mhr mari, min minangkabau, mk mkd mac macedonian, ml mal malayalam,
mn mon mongolian, mr mar marathi, mrj, ms msa may malay, mt mlt maltese, mwl mirandese,
my mya bur burmese, myv erzya, mzn mazanderani, nah nahuatl, nap neapolitan, nb nob, nds,
ne nep nepali, new newar, nl nld dut dutch flemish, nn nno nynorsk, no nor norwegian, oc oci
occitan, or ori oriya odia, os oss ossetian, pa pan punjabi, pam pampanga, pes, pfl palatine,
pl pol polish, pms piedmontese, pnb, prs dari, ps pus pashto, pt por portuguese,
qu que quechua, rm roh romansh, ro ron rum romanian, ru rus russian, rue rusyn, sa san sanskrit,
sah yakut, sc srd sardinian, scn sicilian, sco scots, sd snd sindhi, sh serbo-croatian,
si sin sinhala, sk slk slo slovak, sl slv slovenian, so som somali, sq sqi alb albanian,
sr serbian, srp, su sun sundanese, sv swe se swedish, sw swa swahili, ta tam tamil,
te tel telugu, tg tgk tajik, th tha thai, tk tuk turkmen, tl tgl tagalog, tr tur turkish,
tt tat tatar, tyv tuvan, ug uig uyghur, uk ukr ua ukrainian, ur urd urdu, uz uzb uzbek,
vec venetian, vep veps, vi vie vn vietnamese, vls, vo vol volapuk, wa wln walloon, war waray, wuu,
xal kalmyk, xmf mingrelian, yi yid yiddish, yo yor yoruba, yue cantonese, zh zho chi cn chinese
mandarin, zsm
"""
ROWS = [row.split() for row in TABLE.split(",")]
CODES = frozenset(row[0] for row in ROWS)
CODE_OF = {spelling: row[0] for row in ROWS for spelling in row}
