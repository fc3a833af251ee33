package access

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// A key looks like weft_TENANT_SECRET: the tenant's name tells its owner what it is
// for, weft_ tells scanners of leaked secrets, and the secret is 256 random bits. Of
// these the first 36 are shown, so that people can tell their keys apart.
const (
	keyBegin    = "weft_"
	secretBytes = 32
	secretChars = 43 // of base64url
	shownChars  = 6
	maxKeyChars = len(keyBegin) + 64 + 1 + secretChars
)

// newSecret draws a key for a tenant.
func newSecret(tenant string) (secret, prefix string) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails: the process ends instead
	secret = keyBegin + tenant + "_" + base64.RawURLEncoding.EncodeToString(random[:])
	prefix, _ = prefixOf(secret)
	return secret, prefix
}

// prefixOf gives what may be shown of a key; false if it is none.
func prefixOf(secret string) (string, bool) {
	at := len(secret) - secretChars
	if len(secret) > maxKeyChars || at < len(keyBegin)+2 || !strings.HasPrefix(secret, keyBegin) || secret[at-1] != '_' {
		return "", false
	}
	return secret[:at+shownChars], true
}

// newID draws the id of a key.
func newID() string {
	var random [8]byte
	_, _ = rand.Read(random[:])
	return "key_" + hex.EncodeToString(random[:])
}
