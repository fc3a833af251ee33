;; tries: to make an image of all the memory that describing may have, and dirty, which is more than an invocation's
;; at: invoke
;; wants: limit_exceeded begins with 67108864 bytes of memory
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe")
    (drop (memory.grow (i32.const 1023)))
    (memory.fill (i32.const 65536) (i32.const 1) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65536)))
    (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
