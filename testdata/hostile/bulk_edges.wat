;; tries: bulk instructions that end exactly with the memory, the table or the segment
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data $text "text")
  (table 10 funcref)
  (elem $some func $one)
  (func $one)
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (memory.fill (i32.const 65000) (i32.const 7) (i32.const 536))
    (memory.fill (i32.const 65536) (i32.const 7) (i32.const 0))
    (memory.copy (i32.const 1000) (i32.const 65000) (i32.const 536))
    (memory.copy (i32.const 65536) (i32.const 65536) (i32.const 0))
    (memory.init $text (i32.const 65532) (i32.const 0) (i32.const 4))
    (memory.init $text (i32.const 65536) (i32.const 4) (i32.const 0))
    (table.fill 0 (i32.const 8) (ref.func $one) (i32.const 2))
    (table.fill 0 (i32.const 10) (ref.func $one) (i32.const 0))
    (table.copy 0 0 (i32.const 0) (i32.const 8) (i32.const 2))
    (table.init 0 $some (i32.const 9) (i32.const 0) (i32.const 1))
    (if (i32.ne (i32.load (i32.const 65532)) (i32.const 0x74786574)) (then (unreachable)))
    (if (i32.ne (i32.load8_u (i32.const 1535)) (i32.const 7)) (then (unreachable)))
    (if (ref.is_null (table.get 0 (i32.const 1))) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
