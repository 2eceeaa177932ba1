/** Remembers the highest number that responses to writes have had in `X-Kith-Sequence`. */
export class NewestWrite {
  #sequence: number | undefined

  get sequence(): number | undefined {
    return this.#sequence
  }

  note(headers: Headers): void {
    const text = headers.get('x-kith-sequence')
    if (text !== null && /^\d{1,16}$/.test(text)) this.#sequence = Math.max(this.#sequence ?? 0, Number(text))
  }
}
