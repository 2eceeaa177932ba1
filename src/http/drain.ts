/** Who is inside: requests below `/v1` enter and leave, and a service that drains waits for the last of them. */
export type Drain = {
  /** False from the moment that draining began: /readyz says so, and answers close their connections. */
  accepting(): boolean
  /** Whether who comes now is turned away. */
  refusing(): boolean
  /** Counts one in. What it returns counts that one out. */
  enter(): () => void
  /**
   * Begins draining. For `serving_ms` whoever still comes is served, for balancers need a moment to hear of it. Settles
   * when nobody is inside, and after `patience_ms` in any case.
   */
  begin(times: { serving_ms: number; patience_ms: number }): Promise<void>
}

export function createDrain(): Drain {
  let accepting = true
  let refusing = false
  let inside = 0
  let empty: () => void = () => {}
  return {
    accepting: () => accepting,
    refusing: () => refusing,
    enter: () => {
      inside += 1
      return () => {
        inside -= 1
        if (inside === 0) empty()
      }
    },
    begin: async ({ serving_ms, patience_ms }) => {
      accepting = false
      if (inside === 0) return
      const refuse = setTimeout(() => {
        refusing = true
      }, serving_ms)
      await new Promise<void>(resolve => {
        const patience = setTimeout(resolve, patience_ms)
        empty = () => {
          clearTimeout(patience)
          resolve()
        }
      })
      clearTimeout(refuse)
      refusing = true
    },
  }
}
