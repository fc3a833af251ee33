;; tries: to print all its memory a thousand times by one call, in vectors that overlap, and again
;; at: invoke
;; wants: limit_exceeded more than 1048576 bytes of log
(module
  (import "weft:v1" "output" (func $output (param i32 i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\a4cabi\01esteps\81\a3dnamecruneemits\81iStopEventgaccepts\81jStartEventfevents\a0hworkflowghostile")
  (data (i32.const 512) "\82\00\f6") ;; [0, nil]
  (func (export "weft_describe") (call $output (i32.const 0) (i32.const 85)))
  (func (export "weft_step") (param i32) (result i32) (local i32)
    (loop $next
      (i32.store (i32.add (i32.const 1024) (i32.shl (local.get 1) (i32.const 3))) (i32.const 0))
      (i32.store (i32.add (i32.const 1028) (i32.shl (local.get 1) (i32.const 3))) (i32.const 65536))
      (br_if $next (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 1000))))
    (drop (call $fd_write (i32.const 1) (i32.const 1024) (i32.const 1000) (i32.const 600)))
    (drop (call $fd_write (i32.const 1) (i32.const 1024) (i32.const 1000) (i32.const 600)))
    (call $output (i32.const 512) (i32.const 3))
    (i32.const 0)))
