;; tries: a manifest with a text of 2^64-1 bytes
;; at: manifest
;; wants: invalid_manifest workflow
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a1hworkflow{\ff\ff\ff\ff\ff\ff\ff\ffx")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 20)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
