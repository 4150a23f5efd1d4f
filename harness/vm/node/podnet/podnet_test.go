// SPDX-License-Identifier: Apache-2.0

package podnet_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/beep-lb/beep/harness/vm/node/podnet"
)

// What flanneld writes for both families: the subnets by the address of their bridge.
const both = `FLANNEL_NETWORK=10.42.0.0/16
FLANNEL_SUBNET=10.42.1.1/24
FLANNEL_IPV6_NETWORK=2001:db8:a::/64
FLANNEL_IPV6_SUBNET=2001:db8:a::1:1/112
FLANNEL_MTU=1450
FLANNEL_IPMASQ=true
`

func TestFlannelsSubnetsBecomeANetwork(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	for what, c := range map[string]struct {
		env  string
		want podnet.Network
	}{
		"both families, masqueraded by flanneld": {both, podnet.Network{
			Name: "cbr0", Subnets: prefixes("10.42.1.0/24", "2001:db8:a::1:0/112"), Routes: prefixes("10.42.0.0/16", "2001:db8:a::/64"),
			DefaultGateway: true, MTU: 1450,
		}},
		"one family, and flanneld masquerades nothing": {
			"FLANNEL_NETWORK=10.42.0.0/16\nFLANNEL_SUBNET=10.42.2.1/24\nFLANNEL_MTU=1500\nFLANNEL_IPMASQ=false\n", podnet.Network{
				Name: "cbr0", Subnets: prefixes("10.42.2.0/24"), Routes: prefixes("10.42.0.0/16"),
				DefaultGateway: true, MTU: 1500, Masquerade: true,
			},
		},
	} {
		got, err := podnet.FromFlannel(c.env)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v\nwant %+v", what, got, err, c.want)
		}
	}
}

func TestWhatIsMissingInSubnetEnvIsNamed(t *testing.T) {
	for key, env := range map[string]string{
		"FLANNEL_SUBNET":       "FLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n",
		"FLANNEL_IPV6_NETWORK": strings.Replace(both, "FLANNEL_IPV6_NETWORK=2001:db8:a::/64\n", "", 1),
		"FLANNEL_MTU":          strings.Replace(both, "1450", "wide", 1),
		"FLANNEL_IPMASQ":       strings.Replace(both, "FLANNEL_IPMASQ=true\n", "", 1),
	} {
		if _, err := podnet.FromFlannel(env); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without a good %s: %v", key, err)
		}
	}
}

func TestAConflistIsWhatTheBridgePluginReads(t *testing.T) {
	network, err := podnet.FromFlannel(both)
	if err != nil {
		t.Fatal(err)
	}
	text, err := network.Conflist()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "cniVersion": "1.0.0",
  "name": "cbr0",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "isDefaultGateway": true,
      "hairpinMode": true,
      "mtu": 1450,
      "ipam": {
        "type": "host-local",
        "ranges": [
          [
            {
              "subnet": "10.42.1.0/24"
            }
          ],
          [
            {
              "subnet": "2001:db8:a::1:0/112"
            }
          ]
        ],
        "routes": [
          {
            "dst": "10.42.0.0/16"
          },
          {
            "dst": "2001:db8:a::/64"
          }
        ]
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}`
	if string(text) != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
}
