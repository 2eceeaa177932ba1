/** The reason why the embedded PostgreSQL cannot be used, as one sentence for the operator. */
export class EmbeddedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'EmbeddedError'
  }
}
