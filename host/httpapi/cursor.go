package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/weftrun/weft/host"
)

// seal makes a cursor of a number that counts over the whole server, and hides the
// number: the cursor is one AES block of the number and a hash of the tenant, encrypted
// with the server's secret.
func (s *Server) seal(tenant string, n int64) string {
	block := binary.BigEndian.AppendUint64(make([]byte, 0, aes.BlockSize), uint64(n))
	owner := sha256.Sum256([]byte(tenant))
	block = append(block, owner[:aes.BlockSize-len(block)]...)
	s.cursors.Encrypt(block, block)
	return base64.RawURLEncoding.EncodeToString(block)
}

// unseal returns the number of a cursor; false if the text is not a cursor of the tenant.
func (s *Server) unseal(tenant, text string) (int64, bool) {
	block, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(block) != aes.BlockSize {
		return 0, false
	}
	s.cursors.Decrypt(block, block)
	owner := sha256.Sum256([]byte(tenant))
	n := int64(binary.BigEndian.Uint64(block))
	return n, n > 0 && string(block[8:]) == string(owner[:aes.BlockSize-8])
}

// cursorCipher returns the cipher of cursors for a secret.
func cursorCipher(secret []byte) cipher.Block {
	key := sha256.Sum256(append([]byte("cursors "), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // only for a key of another length
	}
	return block
}

// A cursor is the hash of the filter for which it is valid, and the position after which
// the next page begins. Clients must not look into it.
const (
	cursorHash = 8
	cursorID   = 256 // bytes of the longest handler id
)

func makeCursor(q *host.RunQuery, started int64, handler string) string {
	b := filterHash(q)
	b = binary.BigEndian.AppendUint64(b, uint64(started))
	return base64.RawURLEncoding.EncodeToString(append(b, handler...))
}

// readCursor sets the position of a query that already has its filters.
func readCursor(text string, q *host.RunQuery) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) <= cursorHash+8 || len(b) > cursorHash+8+cursorID {
		return invalid("Invalid cursor: '%s'", clip(text))
	}
	if string(b[:cursorHash]) != string(filterHash(q)) {
		return invalid("The cursor belongs to a listing with other filters")
	}
	q.AfterStarted = int64(binary.BigEndian.Uint64(b[cursorHash:]))
	q.AfterHandler = string(b[cursorHash+8:])
	return nil
}

// filterHash identifies a query's filters. The limit does not count as a filter.
func filterHash(q *host.RunQuery) []byte {
	h := sha256.New()
	put := func(list []string) {
		var n [8]byte
		for _, s := range append([]string{strconv.Itoa(len(list))}, list...) {
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			h.Write(n[:])
			h.Write([]byte(s))
		}
	}
	put(q.Statuses)
	put(q.Workflows)
	put(termTexts(q.Search))
	put([]string{q.Tenant, q.Version, q.Session, strconv.FormatInt(q.Since, 10), strconv.FormatBool(q.Blocked), q.ErrorCode})
	return h.Sum(nil)[:cursorHash]
}

// termTexts returns search terms as users write them.
func termTexts(terms []host.SearchTerm) []string {
	texts := make([]string, len(terms))
	for i, t := range terms {
		if texts[i] = t.Word; t.Prefix {
			texts[i] += "*"
		}
	}
	return texts
}

// numberCursor returns a cursor of a listing that counts its entries: a hash that
// identifies the listing, and the number of the last entry.
func numberCursor(listing string, n uint64) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64([]byte(listing), n))
}

func readNumberCursor(text string) (listing string, n uint64, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != cursorHash+8 {
		return "", 0, invalid("Invalid cursor: '%s'", clip(text))
	}
	return string(b[:cursorHash]), binary.BigEndian.Uint64(b[cursorHash:]), nil
}
