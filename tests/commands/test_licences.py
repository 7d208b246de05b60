"""Licences that allow to pass a text on, among all that people write."""

from prelude import pytest

from pipeline_defs.commands.share.licences import may_be_passed_on

ALLOWED = (
    *(
        "CC0-1.0",
        "CC-BY-4.0",
        "cc-by-sa-3.0",
        "CC-BY-NC-SA-4.0",
        "CC-BY-3.0-IGO",
        "CC-BY-SA-3.0-DE",
    ),
    *(
        "CC BY-SA 4.0",
        "CC-BY",
        "cc_by_4.0",
        "Creative Commons Attribution-ShareAlike 4.0 International",
    ),
    *("Creative Commons Attribution Non-Commercial 3.0 Unported", "Creative Commons Zero v1.0"),
    *(
        "https://creativecommons.org/licenses/by-sa/4.0/",
        "http://creativecommons.org/licenses/by/3.0",
    ),
    *(
        "https://creativecommons.org/publicdomain/zero/1.0/",
        "creativecommons.org/licenses/by/4.0/deed.de",
    ),
    *("Public-Domain", "public domain", "PDDL-1.0", "Unlicense", "MIT", "mit license", "MIT-0"),
    *("The MIT License", "Apache-2.0", "Apache License, Version 2.0", "Apache 2.0", "BSD-3-Clause"),
    *("BSD", "ISC", "Zlib", "BSL-1.0", "MPL-2.0", "Mozilla Public License 2.0", "EPL-2.0"),
    *("GPL-3.0-only", "GPL-2.0-or-later", "GPLv3", "GPL-2.0+", "LGPL-2.1", "AGPL-3.0"),
    *("GNU General Public License v3", "GPL v2 or later", "GFDL-1.3", "ODbL-1.0", "ODC-By-1.0"),
    *("CDLA-Permissive-2.0", "OGL-UK-3.0", "Open Government Licence v3.0", "etalab-2.0"),
    *("DL-DE-BY-2.0", "MIT OR proprietary", "CC-BY-SA-3.0 AND CC-BY-SA-4.0", "Artistic-2.0"),
    *("GPL-2.0-only WITH Classpath-exception-2.0", "(MIT AND Apache-2.0)", "Python-2.0", "OFL-1.1"),
)
REFUSED = (
    *("", " ", "no license", "None", "unknown", "other", "n/a", "NOASSERTION", "proprietary"),
    *(
        "internal use only",
        "research only",
        "academic use only",
        "All rights reserved",
        "(c) 2024 Acme",
    ),
    *(
        "unlicensed",
        "commercial",
        "free",
        "open",
        "open source",
        "see LICENSE",
        "fair use",
        "license",
    ),
    *(
        "CC",
        "Creative Commons",
        "CC-BY-ND-4.0",
        "CC-BY-NC-ND-4.0",
        "cc by-nd",
        "CC-NC",
        "by",
        "CC-BY-X",
    ),
    *("https://creativecommons.org/licenses/by-nc-nd/4.0/", "https://example.org/licenses/by/4.0/"),
    *("Creative Commons Attribution-NoDerivatives 4.0", "MIT AND proprietary", "MIT, proprietary"),
    *(
        "(MIT OR proprietary)",
        "not MIT",
        "MIT?",
        "llama3",
        "gemma",
        "openrail",
        "BUSL-1.1",
        "SSPL-1.0",
    ),
    *(
        "Elastic-2.0",
        "copyrighted",
        "public",
        "domain",
        "terms of use apply",
        "no GPL",
        "WTF",
        "AND",
        "MIT no",
        "CC-BY-4.0-ND",
        "CC BY 4.0 ND",
        "by-nd",
    ),
)


@pytest.mark.parametrize("licence", ALLOWED)
def test_a_licence_that_allows_it_is_known(licence: str) -> None:
    assert may_be_passed_on(licence)


@pytest.mark.parametrize("licence", REFUSED)
def test_whatever_else_is_said_is_no_permission(licence: str) -> None:
    assert not may_be_passed_on(licence)
