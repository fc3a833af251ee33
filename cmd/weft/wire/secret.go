package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// metaSecret names the store's secret among the values of the server itself.
const metaSecret = "secret"

// secret reads what is random and stays with the store, and makes it at first.
func secret(ctx context.Context, store host.Store) ([]byte, error) {
	s, err := store.Meta(ctx, metaSecret)
	if errors.Is(err, host.ErrNotFound) || err == nil && len(s) == 0 {
		s = []byte(rand.Text())
		err = store.SetMeta(ctx, metaSecret, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read the store's secret: %w", err)
	}
	return s, nil
}
