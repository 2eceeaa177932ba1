export type Turns<Comer> = {
  /** At the end of the turn of the event loop in which it came; `held` where it was one of too many. */
  end(comer: Comer, held: boolean): void
  /** One that was held goes on. */
  letGo(comer: Comer): void
}

/**
 * Counts those who come by turns of the event loop: the first `most` of a turn pass, the others are held. In each of the
 * turns after that `most` of them, or an eighth, go on, in order: whoever else the loop serves waits for no more.
 */
export function byTurns<Comer>(most: number, { end, letGo }: Turns<Comer>): (comer: Comer) => void {
  const came: Comer[] = []
  const held: Comer[] = []
  const turn = () => {
    try {
      for (let left = Math.min(held.length, Math.max(most, held.length >> 3)); left > 0; left -= 1) letGo(held.shift()!)
      for (let passed = 0; came.length > 0; passed += 1) {
        const comer = came.shift()!
        if (passed >= most) held.push(comer)
        end(comer, passed >= most)
      }
    } finally {
      // Where one of them throws, the others have their turn all the same.
      if (came.length + held.length > 0) setImmediate(turn)
    }
  }
  return comer => {
    if (came.length + held.length === 0) setImmediate(turn)
    came.push(comer)
  }
}
