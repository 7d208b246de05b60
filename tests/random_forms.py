"""Templates of keys and numbers: `{class*number}` is so many random characters of a class."""

import random
import re
import string

HEX, LOWER, UPPER = "0123456789abcdef", string.ascii_lowercase + "0123456789", "ABCDEFGHJK23456789"
CLASSES = {
    "h": HEX,
    "l": LOWER,
    "u": UPPER,
    "d": "0123456789",
    "a": string.ascii_letters + string.digits,
    "w": string.ascii_letters + string.digits + "-_",
}


def fill(template: str, rng: random.Random) -> str:
    """Return a template with random characters of its classes."""
    return re.sub(
        r"\{(\w)\*(\d+)\}",
        lambda own: "".join(rng.choices(CLASSES[own[1]], k=int(own[2]))),
        template,
    )


# Numbers that are no personal data.
NUMBERS = """version {d*1}.{d*2}.{d*3} build {d*4}
v0.{d*2}.{d*2}.{d*2} of 20{d*2}-0{d*1}-1{d*1}
2019-0{d*1}-1{d*1} 2020-0{d*1}-2{d*1}
0{d*1}.0{d*1}.20{d*2} and 0{d*1}/1{d*1}/20{d*2} and 1{d*1}-0{d*1}-19{d*2}
20{d*2}/0{d*1}/0{d*1} 0{d*1}:{d*2}:{d*2}
ISBN 978-{d*1}-{d*2}-{d*6}-{d*1}
ISBN-10: 0-{d*3}-{d*5}-{d*1}, ISBN 978-0-{d*3}-{d*5}-{d*1}
978{d*10} EAN 40{d*11}
ISSN {d*4}-{d*4}
commit {h*40}
part number {d*4}-{d*3}-{d*3}
Part no. {d*3}-{d*4}-{d*2}, P/N {d*2}-{d*5}
{u*2}-{d*4}-{d*3} and {u*3}{d*3}-{d*4}
won 3-1, 21-19, 6-4 7-6 and 10{d*1}-9{d*1}
set 6-4, 3-6, 7-5; 2{d*1}-1{d*1} at the half
N 52.{d*6}, E 13.{d*6}
4{d*1}.{d*4}° N, 1{d*1}.{d*4}° W; -0.{d*6}, 51.{d*6}
{d*2}°{d*2}'{d*2}" N {d*2}°{d*2}'{d*2}" E
$1,{d*3},{d*3}.00 and 1.{d*3}.{d*3},00 EUR
{d*1}.99 to 1{d*1}.99, 0.{d*8}
192.168.{d*2}.1{d*2}/24 and 10.0.{d*2}.{d*1}
doi:10.{d*4}/{l*6}-{d*4}
arXiv:{d*4}.{d*5}
RFC {d*4}, ISO 8601-1:20{d*2}, IEC 60601-1-{d*2}
1{d*3}-1{d*3}, pp. {d*3}-{d*3}, 18{d*2}/{d*2}
0.{d*3} 0.{d*4} -0.{d*5} 1e-0{d*1}
0x{h*8} 0b01010101 {h*8}
order {d*3}-{d*7}-{d*7}
CVE-20{d*2}-{d*5} and bug {d*6}
CAS {d*5}-{d*2}-{d*1}, EC {d*3}-{d*3}-{d*1}
UN 1{d*3}, E{d*3}, A4-{d*5}
9{d*2}-{d*2}-{d*4} and 666-{d*2}-{d*4}
see 6{d*1}.{d*2}.{d*2}.{d*2}.{d*2}
at 6{d*1}-{d*3}-{d*4}"""
