;; tries: to grow its memory page by page until that is refused, and to write to the last byte of all
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    (if (i32.ne (memory.size) (i32.const 128)) (then (unreachable)))
    (memory.fill (i32.const 65536) (i32.const 255) (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 65536)))
    (i32.store8 (i32.const 0x7fffff) (i32.const 1))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
