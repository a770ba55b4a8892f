
// Code words keep their endings.
{
  const English = Stemmer;
  Stemmer = function () {
    const english = new English();
    this.stemWord = (word) => (word.includes("_") ? word : english.stemWord(word));
  };
}
