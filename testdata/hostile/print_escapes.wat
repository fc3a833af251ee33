;; tries: to write to the terminal of whoever reads its last output: escapes, line ends and bytes that are no text
;; at: invoke
;; wants: trap unreachable ... its last output: ... ERROR: all is lost
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 600) "\bc\02\00\00\30\00\00\00")
  (data (i32.const 700) "\1b[2J\1b]0;mine\07\0d\0aERROR: all is lost\e2\80\a8\c2\85\ff\fe\00\7f\e2\80\aeabc")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (drop (call $fd_write (i32.const 2) (i32.const 600) (i32.const 1) (i32.const 640)))
    (unreachable)))
