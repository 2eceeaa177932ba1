import { useLanguage } from '../app/language.tsx'
import { translatedPlace } from './place-sentences.ts'

/** The places that an erasure does not reach, in the language of the page. */
export function PlacesLeft({ places }: { places: readonly string[] }) {
  const { language } = useLanguage()
  return (
    <ul>
      {places.map(place => (
        <li key={place}>{translatedPlace(language, place) ?? place}</li>
      ))}
    </ul>
  )
}
