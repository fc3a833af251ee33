"""The work on texts, without a workflow."""

import re
from collections import Counter


def chunks(text, n):
    """Splits a text after every n lines."""
    found = re.findall(r"[^\n]*\n|[^\n]+", text)
    return ["".join(found[i:i + n]) for i in range(0, len(found), n)]


def lines(text):
    """Counts the lines of a text; the last one may lack its end."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def words(text):
    """Counts the words of a text, in lower case. A word is a sequence of letters and apostrophes that has a letter."""
    if not text.isascii():  # \w has more than letters, such as Roman numerals
        text = "".join(c if c.isalpha() or c == "'" else " " for c in text)
    found = re.findall(r"(?:[^\W\d_]|')+", text)
    return Counter(small(word) for word in found if word.strip("'"))


def small(word):
    """Gives each letter in lower case by itself, wherever it stands in the word."""
    return word.lower() if word.isascii() else "".join(letter.lower()[0] for letter in word)


def ranked(counts):
    """Returns the words by falling counts, and words with equal counts in alphabetical order."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
