;; Small loops at their tightest: where metering costs the most.
(module
  (memory (export "memory") 16)

  ;; loads and adds n words
  (func (export "sum") (param $n i32) (result i32) (local $i i32) (local $s i32)
    loop $l
      local.get $s
      local.get $i
      i32.const 2
      i32.shl
      i32.const 0xffffc
      i32.and
      i32.load
      i32.add
      local.set $s
      local.get $i
      i32.const 1
      i32.add
      local.tee $i
      local.get $n
      i32.lt_u
      br_if $l
    end
    local.get $s)

  ;; the same, four words a turn
  (func (export "sum4") (param $n i32) (result i32) (local $i i32) (local $s i32)
    loop $l
      local.get $s
      local.get $i
      i32.load
      i32.add
      local.get $i
      i32.load offset=4
      i32.add
      local.get $i
      i32.load offset=8
      i32.add
      local.get $i
      i32.load offset=12
      i32.add
      local.set $s
      local.get $i
      i32.const 16
      i32.add
      i32.const 0xfffff
      i32.and
      local.set $i
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $l
    end
    local.get $s)

  ;; nothing but counting
  (func (export "count") (param $n i32) (result i32)
    loop $l
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $l
    end
    local.get $n)

  ;; a chain of multiplications
  (func (export "mix") (param $n i32) (result i32) (local $x i64)
    i64.const 0x9e3779b97f4a7c15
    local.set $x
    loop $l
      local.get $x
      local.get $x
      i64.const 33
      i64.shr_u
      i64.xor
      i64.const 0xff51afd7ed558ccd
      i64.mul
      local.set $x
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $l
    end
    local.get $x
    i32.wrap_i64)

  (func $fib (export "fib") (param $n i32) (result i32)
    local.get $n
    i32.const 2
    i32.lt_u
    if (result i32)
      local.get $n
    else
      local.get $n
      i32.const 1
      i32.sub
      call $fib
      local.get $n
      i32.const 2
      i32.sub
      call $fib
      i32.add
    end)

  ;; bytes moved one by one
  (func (export "bytes") (param $n i32) (result i32) (local $i i32)
    loop $l
      local.get $i
      i32.const 0xffff
      i32.and
      local.get $i
      i32.const 0xffff
      i32.and
      i32.load8_u offset=65536
      i32.store8
      local.get $i
      i32.const 1
      i32.add
      local.tee $i
      local.get $n
      i32.lt_u
      br_if $l
    end
    local.get $i)

  ;; steps that go one way or the other
  (func (export "collatz") (param $n i32) (result i32) (local $x i32) (local $steps i32)
    loop $outer
      local.get $n
      local.set $x
      block $done
        loop $l
          local.get $x
          i32.const 1
          i32.le_u
          br_if $done
          local.get $x
          i32.const 1
          i32.and
          if
            local.get $x
            i32.const 3
            i32.mul
            i32.const 1
            i32.add
            local.set $x
          else
            local.get $x
            i32.const 1
            i32.shr_u
            local.set $x
          end
          local.get $steps
          i32.const 1
          i32.add
          local.set $steps
          br $l
        end
      end
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $outer
    end
    local.get $steps)

  ;; short copies of variable length
  (func (export "copies") (param $n i32) (result i32)
    loop $l
      i32.const 1024
      i32.const 4096
      local.get $n
      i32.const 63
      i32.and
      memory.copy
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $l
    end
    local.get $n)

  ;; a function that is too small for a call
  (func $add (param i32 i32) (result i32)
    local.get 0
    local.get 1
    i32.add)
  (func (export "calls") (param $n i32) (result i32) (local $s i32)
    loop $l
      local.get $s
      local.get $n
      call $add
      local.set $s
      local.get $n
      i32.const 1
      i32.sub
      local.tee $n
      br_if $l
    end
    local.get $s)

  ;; a machine of opcodes: br_table in a loop
  (func (export "machine") (param $n i32) (result i32) (local $a i32) (local $pc i32)
    loop $next
      block $halt
        block $xor
          block $shift
            block $add
              local.get $pc
              i32.const 3
              i32.and
              br_table $add $shift $xor $halt
            end
            local.get $a
            local.get $pc
            i32.add
            local.set $a
            br $halt
          end
          local.get $a
          i32.const 3
          i32.rotl
          local.set $a
          br $halt
        end
        local.get $a
        i32.const 0x5bd1e995
        i32.xor
        local.set $a
      end
      local.get $pc
      i32.const 1
      i32.add
      local.tee $pc
      local.get $n
      i32.lt_u
      br_if $next
    end
    local.get $a)
)
