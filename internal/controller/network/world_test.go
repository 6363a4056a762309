package network

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// errKilled is what a reconciler sees of its own death.
var errKilled = errors.New("killed")

// world is an API server with a count of writes, which can fail one of them.
type world struct {
	client client.Client
	writes int
	failAt int  // which write fails; 0: none
	lost   bool // it is done, and only its answer is lost
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v2beta1.AddToScheme(scheme), cniv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v2beta1.SpiderMultusConfig{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				return w.write(func() error { return c.Create(ctx, o, options...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				return w.write(func() error { return c.Patch(ctx, o, p, options...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				return w.write(func() error { return c.Delete(ctx, o, options...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
				return w.write(func() error { return c.SubResource(sub).Patch(ctx, o, p, options...) })
			},
		}).Build()
	return w
}

func (w *world) write(do func() error) error {
	w.writes++
	if w.writes != w.failAt {
		return do()
	}
	if w.lost {
		if err := do(); err != nil {
			return err
		}
	}
	return errKilled
}

// reconciler is one that has just started: it knows what there is.
func (w *world) reconciler(t *testing.T) (*Reconciler, *events.FakeRecorder) {
	t.Helper()
	recorder := events.NewFakeRecorder(100)
	r := &Reconciler{Client: w.client, Catalog: policy.NewCatalog(), Recorder: recorder}
	var configs v2beta1.SpiderMultusConfigList
	if err := w.client.List(t.Context(), &configs); err != nil {
		t.Fatal(err)
	}
	for i := range configs.Items {
		r.Catalog.Put(&configs.Items[i])
	}
	return r, recorder
}

// reconcile looks at all SpiderMultusConfigs, as a reconciler that has just
// started, and returns what it told.
func (w *world) reconcile(t *testing.T) (told []string, err error) {
	t.Helper()
	r, recorder := w.reconciler(t)
	var configs v2beta1.SpiderMultusConfigList
	if err := w.client.List(t.Context(), &configs); err != nil {
		t.Fatal(err)
	}
	for _, config := range configs.Items {
		_, one := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&config)})
		err = errors.Join(err, one)
	}
	close(recorder.Events)
	for e := range recorder.Events {
		told = append(told, e)
	}
	return told, err
}

// definitions are all NetworkAttachmentDefinitions, without what each write changes.
func (w *world) definitions(t *testing.T) []cniv1.NetworkAttachmentDefinition {
	t.Helper()
	var list cniv1.NetworkAttachmentDefinitionList
	if err := w.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		list.Items[i].ResourceVersion = ""
	}
	return list.Items
}

// config is a SpiderMultusConfig as it is stored now.
func (w *world) config(t *testing.T, name string) *v2beta1.SpiderMultusConfig {
	t.Helper()
	config := &v2beta1.SpiderMultusConfig{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// change edits the SpiderMultusConfig as a user does.
func (w *world) change(t *testing.T, name string, edit func(*v2beta1.SpiderMultusConfig)) {
	t.Helper()
	config := w.config(t, name)
	edit(config)
	if err := w.client.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// changeDefinition edits the NetworkAttachmentDefinition rail0 behind our back.
func (w *world) changeDefinition(t *testing.T, edit func(*cniv1.NetworkAttachmentDefinition)) {
	t.Helper()
	definition := &cniv1.NetworkAttachmentDefinition{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "rail0"}, definition); err != nil {
		t.Fatal(err)
	}
	edit(definition)
	if err := w.client.Update(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
}

// staleClient has a NetworkAttachmentDefinition as it was.
type staleClient struct {
	client.Client

	definition *cniv1.NetworkAttachmentDefinition
}

func (s staleClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if definition, ok := object.(*cniv1.NetworkAttachmentDefinition); ok {
		s.definition.DeepCopyInto(definition)
		return nil
	}
	return s.Client.Get(ctx, key, object, options...)
}
