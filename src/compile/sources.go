// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/beep-lb/beep/src/model"
)

// sources are the clients that a Service takes: those of the field, or of the annotation where the field is empty, and
// nil if neither names any. A range that cannot be read admits nobody, so that a typing error does not open a Service:
// if no range is left the list is empty and not nil.
func (v *view) sources(service *model.Service) []netip.Prefix {
	texts := service.SourceRanges
	if annotation := strings.TrimSpace(service.SourceRangesAnnotation); len(texts) == 0 && annotation != "" {
		texts = strings.Split(annotation, ",")
	}
	if len(texts) == 0 {
		return nil
	}
	ranges := []netip.Prefix{}
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err == nil && prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		if err != nil || prefix.Addr().Is4In6() {
			v.note(Reason{Code: InvalidSourceRange, Service: service.ObjectKey, Detail: strconv.Quote(text)})
			continue
		}
		ranges = append(ranges, prefix.Masked())
	}
	slices.SortFunc(ranges, netip.Prefix.Compare)
	return slices.Compact(ranges)
}
