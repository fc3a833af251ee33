;; tries: random bytes for 4 GiB, at the edge of its memory
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (call $random_get (i32.const 0) (i32.const -1)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $random_get (i32.const 65535) (i32.const 2)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $random_get (i32.const -1) (i32.const -1)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $random_get (i32.const -1) (i32.const 1)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $random_get (i32.const 65535) (i32.const 1)) (i32.const 0)) (then (unreachable)))
    (if (i32.ne (call $random_get (i32.const 65536) (i32.const 0)) (i32.const 0)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
