package resource

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Keys seal the secrets of resources at rest with AES-256-GCM. Each seal has a fresh
// nonce and is bound to the tenant and the name of the resource, so a text sealed for one
// resource does not open for another. The first key seals; all keys open. Nil Keys cannot
// seal. Keys are immutable.
type Keys struct {
	newest string // id of the first key
	byID   map[string]cipher.AEAD
}

// keyBytes is the length of a key.
const keyBytes = 32

// ParseKeys reads keys, one per line, each 32 random bytes in hex or base64. It ignores
// empty lines and lines that begin with #. Errors do not contain the key.
func ParseKeys(text string) (*Keys, error) {
	k := &Keys{byID: map[string]cipher.AEAD{}}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := hex.DecodeString(line)
		if err != nil {
			key, err = base64.StdEncoding.DecodeString(line)
		}
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("line %d is not a key: a key has %d random bytes in hex or base64, such as 'openssl rand -hex 32' prints", i+1, keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(append([]byte("weft key of resources\x00"), key...))
		id := hex.EncodeToString(sum[:6])
		if k.newest == "" {
			k.newest = id
		}
		k.byID[id] = aead
	}
	if k.newest == "" {
		return nil, errors.New("there is no key: a key has 32 random bytes in hex or base64, such as 'openssl rand -hex 32' prints")
	}
	return k, nil
}

// boundTo returns the additional data that binds a sealed text to its resource.
func boundTo(tenant, name string) []byte {
	b := binary.AppendUvarint([]byte("weft resource 1"), uint64(len(tenant)))
	return append(append(b, tenant...), name...)
}

// seal encrypts secrets by name. id is the id of the key.
func (k *Keys) seal(tenant, name string, secrets map[string]string) (id string, sealed []byte, err error) {
	plain, err := json.Marshal(secrets)
	if err != nil {
		return "", nil, err
	}
	aead := k.byID[k.newest]
	nonce := make([]byte, aead.NonceSize(), aead.NonceSize()+len(plain)+aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return "", nil, err
	}
	return k.newest, aead.Seal(nonce, nonce, plain, boundTo(tenant, name)), nil
}

// open decrypts what seal made.
func (k *Keys) open(tenant, name, id string, sealed []byte) (map[string]string, error) {
	if k == nil {
		return nil, fmt.Errorf("its secrets are sealed under the key %s, and the server has no key (--resource-key-file)", clip(id))
	}
	aead := k.byID[id]
	if aead == nil {
		return nil, fmt.Errorf("its secrets are sealed under the key %s, which the server does not have: add it to the file of --resource-key-file", clip(id))
	}
	n := aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("its sealed secrets are truncated")
	}
	plain, err := aead.Open(nil, sealed[:n], sealed[n:], boundTo(tenant, name))
	if err != nil {
		return nil, fmt.Errorf("its sealed secrets were changed, or are another resource's (key %s)", clip(id))
	}
	var secrets map[string]string
	if err := json.Unmarshal(plain, &secrets); err != nil {
		return nil, errors.New("its sealed secrets cannot be read")
	}
	return secrets, nil
}
