package resource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sse"
)

// maxToolCalls bounds the tool calls in one answer.
const maxToolCalls = 128

// readStream reads a streamed answer. An answer that ends without its end marker counts
// as cut off, whatever arrived before.
func (k *llmKind) readStream(ctx context.Context, t *target, body io.Reader, out *deltas) (*completion, *abi.Error) {
	most := k.web.settings.responseBytes
	limited := &io.LimitedReader{R: body, N: int64(most) + 1}
	lines := sse.NewReader(limited, most+1)
	c := &completion{}
	var text strings.Builder
	var end error
	for end == nil {
		var name, data []byte
		name, data, end = lines.Field()
		if limited.N <= 0 {
			return nil, k.tooLong(t)
		}
		if data = bytes.TrimSpace(data); string(name) != "data" || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			c.content = string(k.web.blot([]byte(text.String())))
			return c, nil
		}
		if end != nil { // the line may be incomplete
			break
		}
		var part wireAnswer
		if err := json.Unmarshal(data, &part); err != nil {
			return nil, garbled(t, err)
		}
		if part.Error != nil {
			return nil, garbled(t, errors.New(part.Error.Message))
		}
		if fail := c.part(t, &part, &text); fail != nil {
			return nil, fail
		}
		if fail := out.came(ctx, func() string { return k.web.settled(text.String()) }); fail != nil {
			return nil, fail
		}
	}
	if errors.Is(end, io.EOF) {
		end = io.ErrUnexpectedEOF
	}
	return nil, k.web.failure(ctx, t, end)
}

// settled returns a growing text without a suffix that may become a secret.
func (k *httpKind) settled(text string) string {
	keep := 0
	for _, form := range k.blots {
		for n := min(len(form)-1, len(text)); n > keep; n-- {
			if strings.HasSuffix(text, string(form[:n])) {
				keep = n
			}
		}
	}
	return string(k.blot([]byte(text[:len(text)-keep])))
}

// part adds a part of an answer.
func (c *completion) part(t *target, p *wireAnswer, text *strings.Builder) *abi.Error {
	c.use(p)
	if p.Model != "" {
		c.model = p.Model
	}
	if len(p.Choices) == 0 {
		return nil
	}
	text.WriteString(p.Choices[0].Delta.Content)
	c.refusal += p.Choices[0].Delta.Refusal
	if f := p.Choices[0].FinishReason; f != "" {
		c.finish = f
	}
	for _, call := range p.Choices[0].Delta.ToolCalls {
		if call.Index < 0 || call.Index >= maxToolCalls {
			return garbled(t, errors.New("it calls too many tools"))
		}
		for len(c.tools) <= call.Index {
			c.tools = append(c.tools, toolCall{})
		}
		tool := &c.tools[call.Index]
		if call.ID != "" {
			tool.id = call.ID
		}
		tool.name += call.Function.Name
		tool.arguments += call.Function.Arguments
	}
	return nil
}

// deltas publishes a growing text. It does not publish again what this call published
// before, even before a crash. If the new text differs from the text published before,
// deltas publishes it from its beginning and says so.
type deltas struct {
	to        *host.ResourceStream // nil: publish nothing
	published int                  // bytes
	hash      [32]byte             // of the published bytes
	last      time.Time
}

// gather is how long deltas are collected, because each publication costs a row of the
// journal.
const gather = 50 * time.Millisecond

func newDeltas(call *host.ResourceCall) *deltas {
	d := &deltas{to: call.Stream}
	if d.to != nil {
		d.published, d.hash = d.to.Published, d.to.Hash
	}
	return d
}

// came publishes what is new in a growing text.
func (d *deltas) came(ctx context.Context, read func() string) *abi.Error {
	if d.to == nil || time.Since(d.last) < gather {
		return nil
	}
	if text := whole(read()); len(text) > d.published {
		return d.publish(ctx, text)
	}
	return nil
}

// end publishes the rest of a streamed text.
func (d *deltas) end(ctx context.Context, text string, streamed bool) *abi.Error {
	if d.to == nil || !streamed || len(text) == d.published && sha256.Sum256([]byte(text)) == d.hash {
		return nil
	}
	return d.publish(ctx, valid(text))
}

func (d *deltas) publish(ctx context.Context, text string) *abi.Error {
	from := d.published
	if from > len(text) || from > 0 && sha256.Sum256([]byte(text[:from])) != d.hash {
		from = 0
	}
	hash := sha256.Sum256([]byte(text))
	if err := d.to.Publish(ctx, host.ResourceDelta{Offset: from, Text: text[from:], Reset: from < d.published, Hash: hash}); err != nil {
		return &abi.Error{Code: abi.StatusUnavailable.Code(), Message: "the run's stream accepts no more of the answer: " + host.MessageOf(err)}
	}
	d.published, d.hash, d.last = len(text), hash, time.Now()
	return nil
}

// whole removes an incomplete character at the end.
func whole(text string) string {
	return strings.TrimSuffix(valid(text), "\ufffd")
}
