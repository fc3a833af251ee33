;; tries: to ask for clocks that are not there, and to have the time written behind its memory
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock_time_get (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_res_get" (func $clock_res_get (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (call $clock_time_get (i32.const 4) (i64.const 0) (i32.const 1024)) (i32.const 28)) (then (unreachable)))
    (if (i32.ne (call $clock_time_get (i32.const -1) (i64.const -1) (i32.const 1024)) (i32.const 28)) (then (unreachable)))
    (if (i32.ne (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 65529)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $clock_time_get (i32.const 1) (i64.const 0) (i32.const -1)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $clock_res_get (i32.const 99) (i32.const 0)) (i32.const 28)) (then (unreachable)))
    (if (i32.ne (call $clock_res_get (i32.const 0) (i32.const -4)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 65528)) (i32.const 0)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
