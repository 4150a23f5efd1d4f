// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/reconcile"
	"github.com/beep-lb/beep/src/watch"
)

// node is one node's part of publishing: its Lease and its candidate, on a connection that can be cut.
type node struct {
	s        *server
	name     string
	addr     netip.Addr
	uid      string
	cut      atomic.Bool
	stop     context.CancelFunc
	done     chan struct{}
	writes   *tally
	snapshot func() (model.Snapshot, bool)
}

// tally counts the writes of all nodes.
type tally struct {
	sync.Mutex
	results map[string]int
	leading int
}

func (c *tally) Leading(is bool) {
	c.Lock()
	defer c.Unlock()
	c.leading--
	if is {
		c.leading += 2
	}
}
func (c *tally) StatusWrite(result string) {
	c.Lock()
	defer c.Unlock()
	c.results[result]++
}
func (c *tally) Published(int, int) {}

func (c *tally) of(result string) int {
	c.Lock()
	defer c.Unlock()
	return c.results[result]
}

// knife cuts a node off the API server.
type knife struct {
	http.RoundTripper
	cut *atomic.Bool
}

func (k knife) RoundTrip(request *http.Request) (*http.Response, error) {
	if k.cut.Load() {
		return nil, errors.New("cut off")
	}
	return k.RoundTripper.RoundTrip(request)
}

// addNode posts a Node.
func (s *server) addNode(n int, writes *tally) *node {
	s.t.Helper()
	node := &node{s: s, name: fmt.Sprintf("node-%d", n), addr: nodeAddr(n), writes: writes}
	posted, err := s.Client.CoreV1().Nodes().Create(s.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.name},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: node.addr.String()}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	node.uid = string(posted.UID)
	return node
}

// start starts the node's controller, as far as it publishes.
func (n *node) start() {
	n.s.t.Helper()
	config, err := n.s.Config(n.name, "system:masters")
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.cut.Store(false)
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return knife{next, &n.cut} }
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		n.s.t.Fatal(err)
	}
	cluster := watch.NewCluster(client, watch.Expectations{Node: n.name, Serving: func() bool { return false }}, discard)
	n.snapshot = cluster.Snapshot
	publisher := &Publisher{
		Client: client, Namespace: namespace, Node: n.name, How: compile.Publishing{}, Snapshot: cluster.Snapshot, Changed: cluster.Changed(),
		Reasons: func() []compile.Reason { return nil }, Observe: n.writes, Log: discard,
		Loop: func(ctx context.Context, do func(context.Context) (time.Time, error), changed <-chan struct{}) {
			(&reconcile.Runner{Do: do}).Run(ctx, changed)
		},
	}
	lease := NewNodeLease(client.CoordinationV1().Leases(namespace), discard)
	lease.Say(model.Lease{Node: n.name, Addresses: []netip.Addr{n.addr}, Attached: true}, n.uid)
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan struct{})
	go func() {
		defer close(n.done)
		var group sync.WaitGroup
		group.Go(func() { cluster.Run(ctx) })
		group.Go(func() { lease.Run(ctx) })
		group.Go(func() {
			if err := publisher.Run(ctx); err != nil {
				n.s.t.Error(err)
			}
		})
		group.Wait()
	}()
}

// end is SIGTERM.
func (n *node) end() {
	n.stop()
	<-n.done
}

func (s *server) post(name string, ports ...int32) {
	s.t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	for _, port := range ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", port), Port: port})
	}
	if _, err := s.Client.CoreV1().Services("default").Create(s.t.Context(), service, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// status is the list of a Service in words: 192.0.2.1 192.0.2.2/PortConflict elsewhere.
func (s *server) status(name string) string {
	s.t.Helper()
	service, err := s.Client.CoreV1().Services("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var words []string
	for _, entry := range service.Status.LoadBalancer.Ingress {
		word := entry.IP + entry.Hostname
		for _, port := range entry.Ports {
			if port.Error != nil {
				word += "/" + *port.Error
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// want waits for the list of a Service, and returns how long it took.
func (s *server) want(t *testing.T, within time.Duration, name, status string) time.Duration {
	t.Helper()
	start := time.Now()
	for s.status(name) != status {
		if time.Since(start) > within {
			t.Fatalf("after %v Service %s lists %q, want %q", within, name, s.status(name), status)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start)
}

// edit changes the status or the spec of a Service as somebody else would.
func (s *server) edit(t *testing.T, name string, status bool, change func(*corev1.Service)) {
	t.Helper()
	services := s.Client.CoreV1().Services("default")
	for {
		service, err := services.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(service)
		if status {
			_, err = services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{})
		} else {
			_, err = services.Update(t.Context(), service, metav1.UpdateOptions{})
		}
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "the object has been modified") {
			t.Fatal(err)
		}
	}
}

// publisher is the index of the node that is elected.
func (s *server) publisher(t *testing.T) int {
	t.Helper()
	lease, err := s.Client.CoordinationV1().Leases(namespace).Get(t.Context(), ElectionLease, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		t.Fatalf("nobody is elected: %v", err)
	}
	var n int
	if _, err := fmt.Sscanf(*lease.Spec.HolderIdentity, "node-%d_", &n); err != nil {
		t.Fatal(err)
	}
	return n - 1
}

// events are the reasons of the Events about a Service, sorted.
func (s *server) events(t *testing.T, name string) string {
	t.Helper()
	list, err := s.Client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, event := range list.Items {
		reasons = append(reasons, event.Reason)
	}
	slices.Sort(reasons)
	return strings.Join(reasons, " ")
}

func init() { klog.SetSlogLogger(discard) } // client-go's own words

// TestPublisher is the life of five nodes on one API server.
func TestPublisher(t *testing.T) {
	s := newServer(t)
	writes := &tally{results: map[string]int{}}
	var nodes []*node
	for n := 1; n <= 5; n++ {
		nodes = append(nodes, s.addNode(n, writes))
	}
	for _, node := range nodes {
		node.start()
		t.Cleanup(func() { node.cut.Store(true); node.end() })
	}
	const all = "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5"
	s.post("web", 80)
	var web []string // its list; the order is that in which the nodes came
	without := func(address string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(web), func(a string) bool { return a == address }), " ")
	}

	t.Run("one patch lists all nodes, and then nothing is written", func(t *testing.T) {
		start := time.Now()
		for len(strings.Fields(s.status("web"))) < 5 && time.Since(start) < 20*time.Second {
			time.Sleep(20 * time.Millisecond)
		}
		web = strings.Fields(s.status("web"))
		if sorted := slices.Sorted(slices.Values(web)); strings.Join(sorted, " ") != all {
			t.Fatalf("web lists %q", web)
		}
		before := writes.of("written")
		if before > 3 { // as many as the waves in which the nodes came
			t.Errorf("%d writes", before)
		}
		time.Sleep(3 * time.Second)
		if after := writes.of("written"); after != before {
			t.Errorf("%d writes while idle", after-before)
		}
	})

	t.Run("a new Service is published at once", func(t *testing.T) {
		s.post("shop", 90)
		if took := s.want(t, 5*time.Second, "shop", all); took > time.Second {
			t.Errorf("after %v", took)
		}
	})

	t.Run("a port that another Service owns is an error in the status, and an Event", func(t *testing.T) {
		s.post("late", 80, 81)
		const word = "/PortConflict"
		s.want(t, 5*time.Second, "late", strings.ReplaceAll(all, " ", word+" ")+word)
		s.post("later", 80)
		time.Sleep(time.Second)
		s.want(t, 0, "later", "")
		for _, name := range []string{"late", "later"} {
			if got := s.events(t, name); got != "PortConflict" {
				t.Errorf("Events of %s: %q", name, got)
			}
		}
	})

	t.Run("foreign entries stay where they are", func(t *testing.T) {
		s.edit(t, "web", true, func(service *corev1.Service) {
			service.Status.LoadBalancer.Ingress = append([]corev1.LoadBalancerIngress{{Hostname: "elsewhere.example"}}, service.Status.LoadBalancer.Ingress[1:]...)
		})
		web = append(web[1:], web[0])
		s.want(t, 5*time.Second, "web", "elsewhere.example "+strings.Join(web, " "))
		time.Sleep(300 * time.Millisecond)
		if got := s.events(t, "web"); got != "ForeignStatus" {
			t.Errorf("Events: %q", got)
		}
		s.edit(t, "web", true, func(service *corev1.Service) {
			service.Status.LoadBalancer.Ingress = service.Status.LoadBalancer.Ingress[1:]
		})
	})

	t.Run("another type and back", func(t *testing.T) {
		s.edit(t, "shop", false, func(service *corev1.Service) { service.Spec.Type = corev1.ServiceTypeClusterIP })
		s.want(t, time.Second, "shop", "") // by the API server itself
		s.edit(t, "shop", false, func(service *corev1.Service) { service.Spec.Type = corev1.ServiceTypeLoadBalancer })
		s.want(t, 3*time.Second, "shop", all)
	})

	t.Run("a foreign class is left alone", func(t *testing.T) {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("other.example/lb"), Ports: []corev1.ServicePort{{Port: 7}}}}
		if _, err := s.Client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		before := writes.of("written")
		s.edit(t, "theirs", true, func(service *corev1.Service) {
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {IP: "198.51.100.9"}}
		})
		time.Sleep(2 * time.Second)
		if got := s.status("theirs"); got != "192.0.2.1 198.51.100.9" || writes.of("written") != before {
			t.Errorf("%q, %d writes", got, writes.of("written")-before)
		}
	})

	t.Run("a node that restarts is not missed", func(t *testing.T) {
		before := writes.of("written")
		nodes[3].end()
		time.Sleep(time.Second)
		nodes[3].start()
		time.Sleep(6 * time.Second)
		if got := writes.of("written") - before; got != 0 || s.status("web") != strings.Join(web, " ") {
			t.Errorf("%d writes, %q", got, s.status("web"))
		}
	})

	for _, who := range []string{"another node", "the publisher"} {
		t.Run("within five seconds of its orderly end leaves "+who, func(t *testing.T) {
			before := writes.of("written")
			leaving := nodes[s.publisher(t)]
			if who == "another node" {
				leaving = nodes[(s.publisher(t)+1)%len(nodes)]
			}
			leaving.end()
			took := s.want(t, 5500*time.Millisecond, "web", without(leaving.addr.String()))
			t.Logf("after %v, with %d writes of 3 Services", took, writes.of("written")-before)
			leaving.start()
			web = append(strings.Fields(without(leaving.addr.String())), leaving.addr.String())
			s.want(t, 15*time.Second, "web", strings.Join(web, " "))
		})
	}

	t.Run("a node that is lost leaves within a minute, and the others stay", func(t *testing.T) {
		before := writes.of("written")
		nodes[1].cut.Store(true)
		took := s.want(t, time.Minute, "web", without("192.0.2.2"))
		if took < 25*time.Second {
			t.Errorf("after %v already", took)
		}
		time.Sleep(time.Second)
		t.Logf("after %v, with %d writes of 3 Services", took, writes.of("written")-before)
		if got := writes.of("written") - before; got > 4 {
			t.Errorf("%d writes of 3 Services", got)
		}
	})
}
