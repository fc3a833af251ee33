package storetest

import (
	"errors"
	"testing"

	"github.com/weftrun/weft/host"
)

func testResources(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	want := func(tenant string, want ...host.ResourceRecord) {
		t.Helper()
		got, err := f.ResourceRecords(f.ctx, tenant)
		ok(t, "ResourceRecords", err)
		same(t, "resources of "+tenant, len(got), len(want))
		for i := range got {
			same(t, "resource", got[i], want[i])
		}
	}
	want("")
	a := host.ResourceRecord{Tenant: "a", Name: "crm", Definition: []byte(`{"kind":"http"}`), KeyID: "k", Sealed: []byte{0, 1, 255}, Created: 5, Updated: 5}
	b := host.ResourceRecord{Tenant: "b", Name: "crm", Definition: []byte(`{}`), Created: 6, Updated: 6}
	ok(t, "PutResource", f.PutResource(f.ctx, b))
	ok(t, "PutResource", f.PutResource(f.ctx, a))
	want("", a, b)
	want("b", b)
	again := a
	again.Definition, again.KeyID, again.Created, again.Updated = []byte(`{"kind":"llm"}`), "k2", 9, 9
	ok(t, "PutResource", f.PutResource(f.ctx, again))
	again.Created = 5
	want("a", again)

	uses := func(tenant string, want ...host.ResourceUse) {
		t.Helper()
		got, err := f.ResourceUses(f.ctx, tenant)
		ok(t, "ResourceUses", err)
		same(t, "uses of "+tenant, len(got), len(want))
		for i := range got {
			same(t, "use", got[i], want[i])
		}
	}
	uses("a")
	u := host.ResourceUse{Tenant: "a", Resource: "crm", Workflow: "w", Calls: 1, Failed: 2, Sent: 3, Received: 4, InputTokens: 5, OutputTokens: 6}
	v := host.ResourceUse{Tenant: "a", Resource: "crm", Workflow: "v", Calls: 7}
	ok(t, "AddResourceUse", f.AddResourceUse(f.ctx, []host.ResourceUse{u, v}))
	ok(t, "AddResourceUse", f.AddResourceUse(f.ctx, []host.ResourceUse{u}))
	u.Add(u)
	uses("a", v, u)
	uses("b")

	ok(t, "DeleteResource", f.DeleteResource(f.ctx, "a", "crm"))
	uses("a")
	want("", b)
	if err := f.DeleteResource(f.ctx, "a", "crm"); !errors.Is(err, host.ErrNotFound) {
		t.Errorf("a second deletion: %v", err)
	}
	for more := true; more; { // they go with their tenant
		var err error
		more, err = f.ClearTenant(f.ctx, "b", 1)
		ok(t, "ClearTenant", err)
	}
	want("")
}
