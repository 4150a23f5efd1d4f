module github.com/beep-lb/beep/harness/vm/node/image/flannel

go 1.26.8

require github.com/flannel-io/flannel v0.28.10
