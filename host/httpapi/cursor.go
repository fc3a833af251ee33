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

// seal makes a cursor of a number that the whole server counts, so that nobody learns the
// number: one block of AES under the server's secret, with the cursor's tenant.
func (s *Server) seal(tenant string, n int64) string {
	block := binary.BigEndian.AppendUint64(make([]byte, 0, aes.BlockSize), uint64(n))
	owner := sha256.Sum256([]byte(tenant))
	block = append(block, owner[:aes.BlockSize-len(block)]...)
	s.cursors.Encrypt(block, block)
	return base64.RawURLEncoding.EncodeToString(block)
}

// unseal gives the number back; false for a text that is not a cursor of the tenant.
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

// cursorCipher is the cipher of cursors under a secret.
func cursorCipher(secret []byte) cipher.Block {
	key := sha256.Sum256(append([]byte("cursors "), secret...))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // for a key of another length only
	}
	return block
}

// A cursor is the hash of the filter it belongs to and the position behind
// which the next page begins. Clients take it for opaque.
const (
	cursorHash = 8
	cursorID   = 256 // bytes of a handler id, the longest
)

func makeCursor(q *host.RunQuery, started int64, handler string) string {
	b := filterHash(q)
	b = binary.BigEndian.AppendUint64(b, uint64(started))
	return base64.RawURLEncoding.EncodeToString(append(b, handler...))
}

// readCursor sets the position of a query that has its filters already.
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

// filterHash identifies a query's filters; the limit is none.
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

// termTexts are terms as they are written.
func termTexts(terms []host.SearchTerm) []string {
	texts := make([]string, len(terms))
	for i, t := range terms {
		if texts[i] = t.Word; t.Prefix {
			texts[i] += "*"
		}
	}
	return texts
}

// numberCursor is the cursor of a listing that counts its entries: a hash that says which
// listing, and the number of the last entry.
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
