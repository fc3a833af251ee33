package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// seal makes a cursor of a number that the whole server counts by, so that it tells
// nobody how far: one block of AES under the server's secret, with the tenant that it
// is of.
func (s *Server) seal(tenant string, n int64) string {
	block := binary.BigEndian.AppendUint64(make([]byte, 0, aes.BlockSize), uint64(n))
	owner := sha256.Sum256([]byte(tenant))
	block = append(block, owner[:aes.BlockSize-len(block)]...)
	s.cursors.Encrypt(block, block)
	return base64.RawURLEncoding.EncodeToString(block)
}

// unseal gives the number back; false for what is no cursor of the tenant's.
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
