;; tries: to have its constants changed: the longest there are, and numbers that are none
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i64.ne (i64.add (i64.const 0x7fffffffffffffff) (i64.const 1)) (i64.const -0x8000000000000000)) (then (unreachable)))
    (if (i32.ne (i32.add (i32.const 0x7fffffff) (i32.const 1)) (i32.const -0x80000000)) (then (unreachable)))
    (if (i64.ne (i64.reinterpret_f64 (f64.const nan:0x4000000000001)) (i64.const 0x7ff4000000000001)) (then (unreachable)))
    (if (i32.ne (i32.reinterpret_f32 (f32.const -nan:0x200001)) (i32.const 0xffa00001)) (then (unreachable)))
    (if (i64.ne (i64x2.extract_lane 1 (v128.const i64x2 1 -2)) (i64.const -2)) (then (unreachable)))
    (i64.store offset=65528 (i32.const 0) (i64.const -1))
    (if (i64.ne (i64.load offset=65528 align=1 (i32.const 0)) (i64.const -1)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
