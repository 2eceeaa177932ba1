import type { Channel, ConsentType } from '@kith/client'

/** A purpose on a channel. `type` is undefined if the session may not read the schema. */
export type Purpose = { consent_type_id: number; channel: Channel; name: string; type: ConsentType | undefined }
