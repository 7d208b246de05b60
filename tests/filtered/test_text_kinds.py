"""Good texts of any kind stay under `balanced`, and pages that say why there is no page go."""

from prelude import pl, pytest

from assets.filtered.filter_documents import filter_documents
from assets.filtered.normalize import normalize_text
from resources.settings.filtering.filter_steps import NormalizeConfig
from resources.settings.filtering.filters import FilterConfig

GOOD = {
    "table": "| Planet | Mass (10^24 kg) | Day (h) | Moons |\n|---|---|---|---|\n"
    "| Mercury | 0.330 | 4222.6 | 0 |\n| Venus | 4.87 | 2802.0 | 0 |\n"
    "| Earth | 5.97 | 24.0 | 1 |\n| Mars | 0.642 | 24.7 | 2 |\n"
    "| Jupiter | 1898 | 9.9 | 95 |\n| Saturn | 568 | 10.7 | 146 |",
    "facts": "Einwohner: 48.211\nFläche: 112,4 km²\nHöhe: 241 m\nPostleitzahl: 37574\n"
    "Bürgermeisterin: Sabine Kurz\nGegründet: 1208\n"
    "Partnerstadt: Thiers\nBundesland: Niedersachsen",
    "log": "## 2.4.1 (2023-05-02)\n\n- Fix a crash in `read_header` when the file is empty (#812)\n"
    "- Drop Python 3.7\n\n## 2.4.0 (2023-04-11)\n\n- Add `--strict`\n- Faster `merge()`\n- Docs",
    "log in French": "Version 1.8\n\n* Correction d'un blocage à l'ouverture des "
    "archives\n* Ajout de l'export en CSV\n* Mise à jour des traductions\n\n"
    "Version 1.7\n\n* Nouvelle icône",
    "chemistry": "2 KMnO4 + 16 HCl → 2 KCl + 2 MnCl2 + 5 Cl2 + 8 H2O\n"
    "Cr2O7²⁻ + 14 H⁺ + 6 e⁻ → 2 Cr³⁺ + 7 H2O   E° = 1.33 V\nM(KMnO4) = 158.03 g/mol\n"
    "The chloride is oxidised, and manganese goes from +7 to +2.",
    "subtitles": "1\n00:00:12,480 --> 00:00:14,900\nWhere were you last night?\n\n"
    "2\n00:00:15,100 --> 00:00:16,720\nI told you. At home.\n\n"
    "3\n00:00:17,000 --> 00:00:19,300\nThat's not what the doorman says.",
    "dialogue": "LEHRER: Wer hat die Aufgabe gelöst?\nJONAS: Ich nicht.\n"
    "MIA: Ich habe es versucht.\nLEHRER: Und?\nMIA: Es bleibt immer ein Rest.\n"
    "JONAS: Bei mir auch.",
    "verse": "The lamps are lit along the quay,\nThe last of all the boats is in,\n"
    "And what was promised by the sea\nIs what the tide will now begin.",
    "recipe": "Tomato soup\n\n800 g tomatoes\n1 onion\n2 cloves of garlic\n30 ml olive oil\n"
    "500 ml stock\n\n1. Chop the onion and fry it in the oil.\n2. Add garlic and tomatoes.\n"
    "3. Pour in the stock and simmer for 20 minutes.\n4. Blend and season.",
    "chess": "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O "
    "9. h3 Nb8 10. d4 Nbd7 11. c4 c6 12. cxb5 axb5 13. Nc3 Bb7 14. Bg5 b4 15. Nb1 h6 1/2-1/2",
    "abc": "X:3\nT:Speed the Plough\nM:4/4\nL:1/8\nK:G\n|:GABc dedB|dedB dedB|c2ec B2dB|c2A2 A2BA|",
    "smiles": "CC(=O)OC1=CC=CC=C1C(=O)O\nCN1C=NC2=C1C(=O)N(C(=O)N2C)C\nC1CCCCC1\nCCO",
    "braille": "⠠⠞⠓⠑⠀⠟⠥⠊⠉⠅⠀⠃⠗⠕⠺⠝⠀⠋⠕⠭⠀⠚⠥⠍⠏⠎⠀⠕⠧⠑⠗⠀⠞⠓⠑⠀⠇⠁⠵⠽⠀⠙⠕⠛⠲",
    "Tibetan": "བོད་ནི་ཨེ་ཤ་ཡའི་དབུས་སུ་ཡོད་པའི་ས་ཁུལ་ཞིག་ཡིན། བོད་ཀྱི་རྒྱལ་ས་ནི་ལྷ་ས་ཡིན།",
    "Dzongkha": "འབྲུག་རྒྱལ་ཁབ་འདི་ ཧི་མ་ལ་ཡའི་རི་རྒྱུད་ནང་ལུ་ཆགས་ཏེ་ཡོདཔ་ཨིན། རྒྱལ་ས་འདི་ ཐིམ་ཕུག་ཨིན།",
    "about a banner": "A banner that says “We use cookies to improve your experience” is not "
    "enough: under European law the visitor must be able to refuse as easily as to accept. The "
    "authority of the state therefore fined a publisher whose second button was grey on grey.",
    "about a refusal": "When the reporter asked for the minutes of the meeting, the program "
    "replied “As an AI language model, I cannot open links”. She then copied the first page by "
    "hand, and the answer that followed named a councillor who had died nine years before.",
}
NOTICES = {
    "javascript": [
        "This page needs JavaScript. Please enable JavaScript and reload.",
        "Für diese Seite muss JavaScript aktiviert sein. Bitte aktivieren Sie JavaScript.",
        "Merci d'activer JavaScript dans votre navigateur pour afficher ce contenu.",
        "Para ver este contenido debe habilitar JavaScript en su navegador.",
        "Per visualizzare la pagina devi abilitare JavaScript nel browser.",
        "Чтобы увидеть страницу, пожалуйста, включите JavaScript в браузере.",
    ],
    "assistant": [
        "I'm sorry, but as an AI language model I am unable to view images. "
        "Could you describe the picture? I'd be happy to help you with that.",
        "Es tut mir leid, aber als KI-Sprachmodell kann ich keine Bilder ansehen. "
        "Wenn Sie das Bild beschreiben, helfe ich Ihnen gerne weiter.",
        "Je suis désolé, mais en tant que modèle de langage, je ne peux pas voir les images.",
        "Lo siento, pero como modelo de lenguaje no tengo acceso a las imágenes.",
        "Mi dispiace, ma come modello linguistico non ho accesso alle immagini.",
        "Извините, но как языковая модель я не имею доступа к изображениям.",
    ],
    "missing": [
        "Sorry, the page you requested could not be found. It may have been moved.",
        "Diese Seite existiert nicht mehr. Die angeforderte Seite wurde nicht gefunden.",
        "Page introuvable : l'adresse demandée n'existe pas ou n'est plus disponible.",
        "Página no encontrada: la dirección que busca ya no está disponible.",
        "Pagina non trovata: l'indirizzo richiesto non esiste più.",
        "Страница не найдена. Возможно, она больше не доступна или не существует.",
    ],
}


def reasons_of(*texts: str) -> list[list[str]]:
    """Return the rules of `balanced` that each text breaks."""
    documents = pl.DataFrame(
        {"doc_id": [f"{i}" for i in range(len(texts))], "text": texts, "lang": None},
        schema_overrides={"lang": pl.String},
    )
    config = FilterConfig.model_validate({"presets": ["balanced"]})
    return filter_documents(documents, config)[1]["reasons"].to_list()


@pytest.mark.parametrize("kind", GOOD)
def test_a_good_text_of_any_kind_stays(kind: str) -> None:
    assert reasons_of(GOOD[kind]) == [[]]


@pytest.mark.parametrize("kind", NOTICES)
def test_a_notice_in_place_of_a_page_goes(kind: str) -> None:
    assert all(reasons_of(*NOTICES[kind]))


def test_breaks_between_words_stay_in_scripts_without_blanks() -> None:
    texts = ["ꦲꦏ꧀ꦱꦫ\u200bꦗꦮ", "東京都は\u200b日本の\u200b首都です。", "ភាសា\u200bខ្មែរ"]
    assert normalize_text(pl.Series(texts), NormalizeConfig()).to_list() == texts
    assert normalize_text(pl.Series(["a\u200bb"]), NormalizeConfig()).to_list() == ["ab"]
