from words import chunks, lines, ranked, words


def test_chunks_have_whole_lines():
    assert chunks("a\nb\nc", 2) == ["a\nb\n", "c"]
    assert chunks("", 2) == []


def test_the_last_line_may_lack_its_end():
    for text, n in (("", 0), ("a", 1), ("a\n", 1), ("\n", 1), ("a\nb", 2)):
        assert lines(text) == n


def test_words_have_letters():
    assert words("don't 'tis '' 12") == {"don't": 1, "'tis": 1}
    assert words("\u0130 \u03a3\u03c2") == {"i": 1, "\u03c3\u03c2": 1}
    assert words("x1y a\u0301 \u2160") == {"x": 1, "y": 1, "a": 1}  # neither the mark nor the Roman numeral is a letter


def test_frequent_words_come_first():
    assert ranked({"b": 1, "a": 1, "z": 2}) == [("z", 2), ("a", 1), ("b", 1)]
