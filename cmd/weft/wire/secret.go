package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// metaSecret names the store's secret among the server's own values.
const metaSecret = "secret"

// secret reads the random secret of the store. The first call creates it.
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
