;; tries: to print 1024 vectors of 4 GiB each, and to have random bytes for 4 GiB: errnos, as the ranges are not there
;; at: invoke
;; wants: ok
(module (import "weft:v1" "output" (func $output (param i32 i32))) (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) (result i32))) (import "wasi_snapshot_preview1" "random_get" (func $r (param i32 i32) (result i32)))
(memory (export "memory") 1) (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile") (data (i32.const 512) "\82\00\f6") (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
(func (export "weft_step") (param i32) (result i32) (local i32)
 (loop $l (i32.store (i32.add (i32.const 1024) (i32.mul (local.get 1) (i32.const 8))) (i32.const 0)) (i32.store (i32.add (i32.const 1028) (i32.mul (local.get 1) (i32.const 8))) (i32.const -1)) (br_if $l (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 1024))))
 (if (i32.ne (call $w (i32.const 1) (i32.const 1024) (i32.const 1024) (i32.const 600)) (i32.const 21)) (then (unreachable)))
 (if (i32.ne (call $w (i32.const 1) (i32.const -1) (i32.const 1) (i32.const -1)) (i32.const 21)) (then (unreachable)))
 (if (i32.ne (call $r (i32.const -1) (i32.const -1)) (i32.const 21)) (then (unreachable)))
 (call $output (i32.const 512) (i32.const 3)) (i32.const 0)))
