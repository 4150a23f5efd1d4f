// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// query is one line of a panel, or one for each set of labels that its legend names.
type query struct{ expr, legend string }

// panel is what one of them shows. Width and height are in Grafana's grid, of 24 columns.
type panel struct {
	title, about, unit string
	stacked            bool
	max                float64 // of the axis; 0: as the values are
	queries            []query
}

// row is panels below a title: figures, then graphs.
type row struct {
	title   string
	figures []panel
	graphs  []panel
}

// source is the dashboard's own choice of a Prometheus.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// dashboardJSON is the dashboard as Grafana imports it.
func dashboardJSON() ([]byte, error) {
	b := dashboard.NewDashboardBuilder("beep").
		Uid("beep").Description("beep, the load balancer for bare-metal Kubernetes: what the nodes forward, and how they are.").
		Tags([]string{"beep", "kubernetes"}).Refresh("30s").Time("now-1h", "now").Timezone("browser").Editable().
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus")).
		WithVariable(dashboard.NewQueryVariableBuilder("instance").Label("Instance").Datasource(source).
			Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(process_resident_memory_bytes, instance)")}).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
			Multi(true).IncludeAll(true).AllValue(".*"))
	for _, row := range rows {
		b = b.WithRow(dashboard.NewRowBuilder(row.title))
		for _, figure := range row.figures {
			b = b.WithPanel(figure.stat(24 / uint32(len(row.figures))))
		}
		for _, graph := range row.graphs {
			b = b.WithPanel(graph.graph())
		}
	}
	built, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("build the dashboard: %w", err)
	}
	text, err := json.MarshalIndent(built, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the dashboard: %w", err)
	}
	return append(text, '\n'), nil
}

// stat is a panel of the last value alone.
func (p panel) stat(width uint32) *stat.PanelBuilder {
	b := stat.NewPanelBuilder().Title(p.title).Description(p.about).Unit(p.unit).Datasource(source).Height(4).Span(width).
		GraphMode(common.BigValueGraphModeArea)
	for i, q := range p.queries {
		b = b.WithTarget(q.target(i))
	}
	return b
}

// graph is a panel over time, half of the page wide.
func (p panel) graph() *timeseries.PanelBuilder {
	b := timeseries.NewPanelBuilder().Title(p.title).Description(p.about).Unit(p.unit).Datasource(source).Height(8).Span(12).Min(0).
		FillOpacity(10).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.stacked {
		b = b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal)).FillOpacity(40)
	}
	if p.max > 0 {
		b = b.Max(p.max)
	}
	for i, q := range p.queries {
		b = b.WithTarget(q.target(i))
	}
	return b
}

func (q query) target(i int) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Datasource(source).Expr(q.expr).LegendFormat(q.legend).RefId(string(rune('A' + i))).Range()
}
