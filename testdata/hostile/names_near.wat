;; tries: to export names that look like the host's own
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (global $fuel (export "fuel") (export "weft") (export "Weft:fuel") (mut i64) (i64.const 5))
  (global $depth (export "depth") (export " weft:depth") (export "") (mut i32) (i32.const 5))
  (func $nothing (export "refuel") (export "overflow") (export "weft.fuel") (export "\00weft:fuel"))
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (global.set $fuel (i64.const -1))
    (global.set $depth (i32.const -1))
    (call $nothing)
    (loop $again (br_if $again (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000))))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
