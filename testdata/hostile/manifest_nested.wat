;; tries: a manifest with 10,000 arrays, each inside of the one before
;; at: manifest
;; wants: invalid_manifest
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe")
    (memory.fill (i32.const 1024) (i32.const 0x81) (i32.const 10000))
    (i32.store8 (i32.const 11024) (i32.const 0xf6))
    (call $output (i32.const 1024) (i32.const 10001)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
