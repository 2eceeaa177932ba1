/** Who is inside: requests below `/v1` enter and leave, and a service that drains waits for the last of them. */
export type Drain = {
  /** False from the moment that draining began: /readyz says so, and answers close their connections. */
  accepting(): boolean
  enter(): void
  leave(): void
  /** Begins draining. Settles when nobody is inside, and after `patience_ms` in any case. */
  begin(patience_ms: number): Promise<void>
}

export function createDrain(): Drain {
  let accepting = true
  let inside = 0
  let empty: () => void = () => {}
  return {
    accepting: () => accepting,
    enter: () => {
      inside += 1
    },
    leave: () => {
      inside -= 1
      if (inside === 0) empty()
    },
    begin: async patience_ms => {
      accepting = false
      if (inside === 0) return
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, patience_ms)
        empty = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
  }
}
