import type { Send, Transport } from './transport.ts'

/** The methods of the client for the endpoints of one subject. */
export class EndpointGroup {
  protected readonly transport: Transport
  protected readonly send: Send

  constructor(transport: Transport) {
    this.transport = transport
    this.send = transport.send
  }
}
