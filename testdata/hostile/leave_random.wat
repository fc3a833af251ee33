;; tries: to tell by random_get, which it has seeded, whether it has run before
;; at: invoke
;; wants: ok
;; runs: 6
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.load (i32.const 1000)) (then (unreachable)))
    (drop (call $random_get (i32.const 1000) (i32.const 64)))
    (if (i64.eqz (i64.load (i32.const 1000))) (then (unreachable)))
    (i64.store (i32.const 520) (i64.load (i32.const 1000)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
