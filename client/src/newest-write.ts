/**
 * Remembers the highest change number in responses to writes: from `X-Kith-Sequence`, or from the last line of an
 * import.
 */
export class NewestWrite {
  #sequence: number | undefined

  get sequence(): number | undefined {
    return this.#sequence
  }

  note(headers: Headers): void {
    const text = headers.get('x-kith-sequence')
    if (text !== null && /^\d{1,16}$/.test(text)) this.noteSequence(Number(text))
  }

  noteSequence(sequence: number): void {
    this.#sequence = Math.max(this.#sequence ?? 0, sequence)
  }
}
