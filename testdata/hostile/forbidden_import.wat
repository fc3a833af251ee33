;; tries: to import what nobody gives: three functions, a table, a global
;; at: upload
;; wants: forbidden_import env.system is not allowed; imports may come from weft:v1 and wasi_snapshot_preview1
;; wants: forbidden_import weft:v1.state_steal is not allowed; allowed of weft:v1 are call_resource, collect_events
;; wants: forbidden_import wasi_snapshot_preview1.fork is not allowed
;; wants: forbidden_import env.table is a table
;; wants: forbidden_import env.global is a global
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "env" "system" (func (param i32)))
  (import "weft:v1" "state_steal" (func (param i32 i32) (result i64)))
  (import "wasi_snapshot_preview1" "fork" (func (result i32)))
  (import "env" "table" (table 1 funcref))
  (import "env" "global" (global i32))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
