package main

// The host writes its messages in one form only, so that there is little to
// read: definite lengths, and nothing that is not well formed.

// head reads the head of an item: its major type and its argument.
func head(b *[]byte) (major byte, n uint64) {
	first := (*b)[0]
	*b = (*b)[1:]
	low := first & 31
	if low < 24 {
		return first >> 5, uint64(low)
	}
	size := 1 << (low - 24)
	for _, c := range (*b)[:size] {
		n = n<<8 | uint64(c)
	}
	*b = (*b)[size:]
	return first >> 5, n
}

// length reads the head of an array.
func length(b *[]byte) int {
	_, n := head(b)
	return int(n)
}

// next takes the next item, whole.
func next(b *[]byte) []byte {
	item := *b
	skip(b)
	return item[:len(item)-len(*b)]
}

func skip(b *[]byte) {
	major, n := head(b)
	switch major {
	case 2, 3: // bytes, text
		*b = (*b)[n:]
	case 4:
		for range n {
			skip(b)
		}
	case 5:
		for range 2 * n {
			skip(b)
		}
	}
}

// field finds a value in a map; nil: it has none.
func field(m []byte, key string) []byte {
	_, n := head(&m)
	for range n {
		k := text(next(&m))
		v := next(&m)
		if k == key {
			return v
		}
	}
	return nil
}

func text(item []byte) string {
	head(&item)
	return string(item)
}

func number(item []byte) uint64 {
	_, n := head(&item)
	return n
}

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major<<5|byte(n))
	case n < 1<<8:
		return append(b, major<<5|24, byte(n))
	case n < 1<<16:
		return append(b, major<<5|25, byte(n>>8), byte(n))
	}
	b = append(b, major<<5|27)
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(n>>shift))
	}
	return b
}

func appendText(b []byte, s string) []byte { return append(appendHead(b, 3, uint64(len(s))), s...) }
