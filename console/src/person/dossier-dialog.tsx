import { type DossierPageOptions, type Person, pageLanguages } from '@kith/client'
import { useEffect, useRef, useState } from 'react'
import { client, useWrite } from '../app/client.ts'
import { useFormats, useLanguage, useMessages } from '../app/language.tsx'
import { fieldLabels } from '../entity/field-labels.ts'
import { Button } from '../ui/button.tsx'
import { Actions, Dialog } from '../ui/dialog.tsx'
import { Notice, Problem } from '../ui/page.tsx'
import { saveBlob } from '../ui/save-blob.ts'
import { Select } from '../ui/select.tsx'
import { rightsMessages } from './rights-messages.ts'

type DossierDialogProps = { id: string; person: Person | undefined; onClose: () => void }

type PageLanguage = NonNullable<DossierPageOptions['language']>

/** The media type of each kind of file. */
const mediaTypes = { html: 'text/html', ndjson: 'application/x-ndjson' } as const
type Format = keyof typeof mediaTypes

/** Downloads all stored data about a person: as a page in the person's language, or as lines of JSON. */
export function DossierDialog({ id, person, onClose }: DossierDialogProps) {
  const texts = useMessages(rightsMessages)
  const formats = useFormats()
  const consoleLanguage = useLanguage().language
  const ofPerson = pageLanguages.find(language => person?.language?.toLowerCase().startsWith(language))
  const [language, setLanguage] = useState<PageLanguage>(ofPerson ?? consoleLanguage)
  const controller = useRef<AbortController>(null)
  useEffect(() => () => controller.current?.abort(), [])
  const download = useWrite(async (format: Format) => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const parts: string[] = []
    if (format === 'html')
      for await (const part of client.people.dossierPage({ id }, { language, signal })) parts.push(part)
    else for await (const line of client.people.dossier({ id }, { signal })) parts.push(`${JSON.stringify(line)}\n`)
    const file = new Blob(parts, { type: mediaTypes[format] })
    saveBlob(file, `dossier-${fileNameOf(person?.external_id ?? id)}.${format}`)
  })
  const running = download.isPending ? download.variables : undefined
  return (
    <Dialog title={texts.dossierTitle} onClose={onClose} hasDraft={false}>
      <p>{texts.dossierAdvice}</p>
      <Select<PageLanguage>
        label={fieldLabels[consoleLanguage].language}
        help={texts.dossierLanguage}
        options={pageLanguages.map(value => ({ value, label: formats.language(value) }))}
        value={language}
        onChange={setLanguage}
      />
      {download.isSuccess && <Notice kind="success" title={texts.dossierDone} />}
      {download.error && <Problem error={download.error} />}
      <Actions>
        <Button onPress={onClose}>{download.isSuccess ? texts.close : texts.cancel}</Button>
        <Button
          onPress={() => download.mutate('ndjson')}
          isPending={running === 'ndjson'}
          isDisabled={running === 'html'}
        >
          {texts.dossierAsData}
        </Button>
        <Button
          look="primary"
          onPress={() => download.mutate('html')}
          isPending={running === 'html'}
          isDisabled={running === 'ndjson'}
          autoFocus
        >
          {texts.dossierAsPage}
        </Button>
      </Actions>
    </Dialog>
  )
}

/** An identifier as a part of a file name. */
export const fileNameOf = (identifier: string): string => identifier.replaceAll(/[^\p{L}\p{N}._-]+/gu, '_').slice(0, 80)
