;; tries: memory.init from a segment that it has dropped
;; at: invoke
;; wants: trap out of bounds memory access
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data $text "text")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (memory.init $text (i32.const 1024) (i32.const 0) (i32.const 4))
    (data.drop $text)
    (memory.init $text (i32.const 1024) (i32.const 0) (i32.const 0))
    (memory.init $text (i32.const 1024) (i32.const 0) (i32.const 1))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
