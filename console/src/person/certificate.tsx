import type { Erasure } from '@kith/client'
import { client, useWrite } from '../app/client.ts'
import { useMessages } from '../app/language.tsx'
import { Button } from '../ui/button.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { rightsMessages } from './rights-messages.ts'

/** Saves the certificate of an erasure as a file that `kith verify` reads. */
export const downloadCertificate = (id: string, certificate: string) =>
  saveBlob(new Blob([`${certificate}\n`], { type: 'application/jose' }), `erasure-${id}.certificate`)

const pageSize = 500

/** The erasure of a person, from the list of all. */
async function findErasure(id: string): Promise<Erasure | undefined> {
  for await (const erasure of client.erasures.list({ size: pageSize })) if (erasure.person_id === id) return erasure
  return undefined
}

/** Downloads the certificate of a person who was erased. */
export function CertificateButton({ id }: { id: string }) {
  const texts = useMessages(rightsMessages)
  const load = useWrite(async () => {
    const certificate = (await findErasure(id))?.certificate ?? null
    if (certificate !== null) downloadCertificate(id, certificate)
    return certificate
  })
  return (
    <>
      {load.error && <Problem error={load.error} />}
      {load.data === null && <Notice title={texts.noCertificate} />}
      <Button onPress={() => load.mutate()} isPending={load.isPending}>
        {texts.certificate}
      </Button>
    </>
  )
}
