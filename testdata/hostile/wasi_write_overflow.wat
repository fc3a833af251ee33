;; tries: to print vectors whose lengths add up to more than 2^32, and whose list lies behind its memory
;; at: invoke
;; wants: ok
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (data (i32.const 700) "\00\00\00\00\ff\ff\ff\ff\00\00\00\00\ff\ff\ff\ff")
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32)
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const 700) (i32.const 2) (i32.const 600)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const -8) (i32.const 1) (i32.const 600)) (i32.const 21)) (then (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const 65529) (i32.const 1) (i32.const 600)) (i32.const 21)) (then
      (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const 0) (i32.const -1) (i32.const 600)) (i32.const 28)) (then (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const 0) (i32.const 0x20000001) (i32.const 600)) (i32.const 28))
      (then (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 1) (i32.const 800) (i32.const 1) (i32.const 65533)) (i32.const 21)) (then
      (unreachable)))
    (if (i32.ne (call $fd_write (i32.const 7) (i32.const 800) (i32.const 1) (i32.const 600)) (i32.const 8)) (then (unreachable)))
    (if (i32.ne (call $fd_write (i32.const -1) (i32.const 800) (i32.const 1) (i32.const 600)) (i32.const 8)) (then (unreachable)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
