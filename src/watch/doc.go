// SPDX-License-Identifier: Apache-2.0

// Package watch turns what Kubernetes knows, or a directory of manifests says, into a model.Snapshot: the Services,
// EndpointSlices and Nodes of a moment. Invariant: no Snapshot leaves before all three lists are complete and
// processed, and a list that is not to be believed changes none before a second read says the same.
package watch
