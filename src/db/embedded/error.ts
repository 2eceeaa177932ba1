/** Why the embedded PostgreSQL cannot be used, as one sentence for the person who started it. */
export class EmbeddedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedError'
  }
}
